package task

// handshakeStack is what a handshake takes of its goroutine's stack, with a margin: bytes.
const handshakeStack = 5 << 10

// DeepStack gives the calling goroutine room for a handshake at once. A goroutine begins
// with 2 KiB, or what the last collection found usual. Its stack doubles each time it is
// full, and all that is on it is looked through and copied: call this where little is.
//
//go:noinline
func DeepStack() {
	if never != nil { // room is part of the frame all the same, and is not cleared
		var room [handshakeStack]byte
		copy(room[:], never)
		never = append(never, room[:]...)
	}
}

var never []byte // nil; the compiler does not know that
