package task

// handshakeStack is what a handshake takes of its goroutine's stack, and some more: bytes.
const handshakeStack = 5 << 10

// DeepStack gives the calling goroutine room for a handshake at once. It begins with
// 2 KiB, and would be given twice as much each time that they are full; what is on the
// stack by then is looked through and copied. Called where little is.
//
//go:noinline
func DeepStack() {
	if untold != nil { // what is declared here is part of the frame all the same, and is not cleared
		var room [handshakeStack]byte
		copy(room[:], untold)
		untold = append(untold, room[:]...)
	}
}

var untold []byte // nil, which the compiler does not know
