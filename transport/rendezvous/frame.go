package rendezvous

import (
	"io"

	"weft/transport/wire"
)

// Frame reads one message and not a byte more: on a comm's first stream data may
// follow.
func (c *Conn) Frame() ([]byte, error) {
	b := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	n, err := wire.FrameLength(b)
	if err != nil || n == len(b) {
		return b, err
	}
	b = append(b, make([]byte, n-len(b))...)
	_, err = io.ReadFull(c, b[wire.HeaderSize:])
	return b, err
}
