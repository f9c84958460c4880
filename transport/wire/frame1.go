package wire

import "fmt"

// Frame1Size and the signed part of it.
const (
	Frame1Size   = 64
	frame1Signed = 32
)

// Role says what the connection is for.
type Role uint16

// The roles of a connection.
const (
	RoleComm    Role = 1 // first stream of a comm
	RoleStream  Role = 2 // further stream of a comm
	RoleControl Role = 3 // control connection of a process pair
)

var frame1Magic = [4]byte{'w', 'f', 't', '1'}

// Frame1 opens every connection: magic 4 | version 2 | role 2 | listen id 8 |
// nonce 16 | HMAC-SHA256(token, those 32 bytes) 32.
type Frame1 struct {
	Version  uint16
	Role     Role
	ListenID uint64
	Nonce    Nonce
	Proof    Proof
}

func (f *Frame1) signed() (b [frame1Signed]byte) {
	copy(b[:], frame1Magic[:])
	le.PutUint16(b[4:], f.Version)
	le.PutUint16(b[6:], uint16(f.Role))
	le.PutUint64(b[8:], f.ListenID)
	copy(b[16:], f.Nonce[:])
	return b
}

// labelled begins a message that is proven later in the handshake.
func (f *Frame1) labelled(label byte) []byte {
	b := f.signed()
	return append(append(make([]byte, 0, longestProven), label), b[:]...)
}

// Sign sets the proof.
func (f *Frame1) Sign(token *Token) {
	b := f.signed()
	f.Proof = prove(token, b[:])
}

// Verify reports whether the sender of f knew the token.
func (f *Frame1) Verify(token *Token) bool {
	b := f.signed()
	p := prove(token, b[:])
	return p.Equal(&f.Proof)
}

// Append writes f.
func (f *Frame1) Append(dst []byte) []byte {
	b := f.signed()
	return append(append(dst, b[:]...), f.Proof[:]...)
}

// ParseFrame1 reads a frame 1. It accepts every version: the proof comes first,
// then the hello tells both sides who does not match whom.
func ParseFrame1(b []byte) (Frame1, error) {
	if len(b) != Frame1Size {
		return Frame1{}, malformed("frame 1", "%d bytes", len(b))
	}
	c := cursor{rest: b}
	var magic [4]byte
	c.copy(magic[:])
	if magic != frame1Magic {
		return Frame1{}, malformed("frame 1", "starts with % x", magic)
	}
	f := Frame1{Version: c.u16(), Role: Role(c.u16()), ListenID: c.u64()}
	c.copy(f.Nonce[:])
	c.copy(f.Proof[:])
	if f.Role < RoleComm || f.Role > RoleControl {
		return Frame1{}, malformed("frame 1", "role %d", f.Role)
	}
	return f, nil
}

// String names the role for log lines.
func (r Role) String() string {
	switch r {
	case RoleComm:
		return "comm"
	case RoleStream:
		return "stream"
	case RoleControl:
		return "control"
	}
	return fmt.Sprintf("role %d", uint16(r))
}

// CouldBeFrame1 reports whether b, however short, may begin a frame 1.
func CouldBeFrame1(b []byte) bool {
	n := min(len(b), len(frame1Magic))
	return string(b[:n]) == string(frame1Magic[:n])
}
