package rendezvous

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"weft/transport/task"
	"weft/transport/wire"
)

var (
	errUnknownListen = errors.New("frame 1 names no open listen")
	errWrongToken    = errors.New("frame 1 does not prove the token")
	errReplay        = errors.New("frame 1 was seen before (replay)")
)

// ErrWithdrawn is no news: of several attempts of a connect the quickest goes on,
// and the others end as if nobody had called, or come when the listen is closed. A
// connect that fails says so itself.
var ErrWithdrawn = errors.New("the connecting side gave this attempt up")

// receive serves a connection that was accepted.
func (r *Sockets) receive(s *socket, c *Conn) {
	defer task.Rescue(r.net.log, "accept", func(error) { c.Close() })
	task.DeepStack()
	r.judge(s, c)
}

// judge is silent until frame 1 proves the token of a listen, which then has
// the connection.
func (r *Sockets) judge(s *socket, c *Conn) {
	c.SetDeadline(time.Now().Add(HandshakeLimit))
	f1, l, err := r.frame1(c)
	if err != nil {
		if !errors.Is(err, ErrWithdrawn) {
			r.noise.dropped(c.Remote().Addr(), s.addr.String(), err)
		}
		c.Close()
		return
	}
	known := r.proven.enter(c)
	c.Leaves()
	if known == nil {
		c.Close()
		return
	}
	c.waits(known)
	l.Proven(c, f1)
}

// frame1 reads and judges the first 64 bytes. Bytes that cannot be a frame 1
// end the connection as soon as they are there.
func (r *Sockets) frame1(c *Conn) (wire.Frame1, *Listen, error) {
	var b [wire.Frame1Size]byte
	for got := 0; got < len(b); {
		n, err := c.Read(b[got:])
		if got += n; got == 0 && err != nil && PeerGone(err) {
			return wire.Frame1{}, nil, ErrWithdrawn
		}
		if err != nil {
			return wire.Frame1{}, nil, fmt.Errorf("%d of 64 bytes of frame 1: %w", got, err)
		}
		if !wire.CouldBeFrame1(b[:got]) {
			return wire.Frame1{}, nil, fmt.Errorf("it begins with %q", b[:min(got, 16)])
		}
	}
	f1, err := wire.ParseFrame1(b[:])
	if err != nil {
		return wire.Frame1{}, nil, err
	}
	l, was := r.lookup(f1.ListenID)
	switch {
	case was:
		return wire.Frame1{}, nil, ErrWithdrawn
	case l == nil:
		return wire.Frame1{}, nil, errUnknownListen
	case !f1.Verify(&l.Token):
		return wire.Frame1{}, nil, errWrongToken
	case !l.Fresh(f1.Nonce):
		return wire.Frame1{}, nil, errReplay
	}
	return f1, l, nil
}

// PeerGone reports whether err means that the peer's kernel closed the
// connection, so that its data streams end too, each after its last byte.
func PeerGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
