package rendezvous

import (
	"io"

	"weft/transport/wire"
)

// Frame reads one message and not a byte more: on a comm's first stream data may
// follow.
func (c *Conn) Frame() ([]byte, error) {
	return c.FrameBehind(0, func([]byte) error { return nil })
}

// FrameBehind is Frame for a message behind n other bytes, of which judge has its say
// as soon as they are there.
func (c *Conn) FrameBehind(n int, judge func(before []byte) error) ([]byte, error) {
	b := make([]byte, n+wire.HeaderSize)
	got, err := io.ReadAtLeast(c, b, n)
	if err == nil {
		err = judge(b[:n])
	}
	if err == nil {
		_, err = io.ReadFull(c, b[got:])
	}
	if err != nil {
		return nil, err
	}
	size, err := wire.FrameLength(b[n:])
	if err != nil {
		return nil, err
	}
	read := len(b)
	b = append(b, make([]byte, n+size-read)...)
	_, err = io.ReadFull(c, b[read:])
	return b[n:], err
}
