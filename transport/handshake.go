package transport

import (
	"context"
	"fmt"
	"sync"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

// readers are the 4 KiB buffers of handshakes; nobody gets one before its
// frame 1 is verified.
var readers = sync.Pool{New: func() any { return wire.NewReader(nil) }}

// handshake is the passive side of a connection whose frame 1 is verified.
type handshake struct {
	*env
	listener *Listener
	conn     *rendezvous.Conn
	f1       wire.Frame1
	f2       wire.Frame2
	reader   *wire.Reader
	hello    wire.Hello // the peer's
}

func (h *handshake) peer() string {
	if h.hello.Host == "" {
		return h.conn.Remote().String()
	}
	return rendezvous.PeerName(&h.hello, h.conn)
}

// says reports whether this connection may have one more line in the log.
func (h *handshake) says() bool {
	return h.noise.Allows(h.conn.Remote().Addr(), h.listener.ctx.opts.Log)
}

// readHello reads the peer's hello and answers with ours followed by rest;
// when the versions differ both sides can name each other.
func (h *handshake) readHello(pads []byte, rest func(b []byte) []byte) error {
	frame, err := h.reader.NextPadded()
	if err != nil {
		return fmt.Errorf("reading hello: %w", err)
	}
	if h.hello, err = wire.ParseHello(frame); err != nil {
		return err
	}
	mine := h.env.hello(h.listener.dev)
	b := mine.Append(pads)
	if mismatch := rendezvous.Versions(&mine, &h.hello); mismatch != nil {
		h.conn.Write(b)
		if h.says() {
			report.Say(h.listener.ctx.opts.Log, mismatch.On(h.listener.dev.Name))
		}
		return mismatch
	}
	if rest == nil {
		return nil
	}
	if _, err := h.conn.Write(rest(b)); err != nil {
		return fmt.Errorf("sending hello: %w", err)
	}
	return nil
}

// turn waits for a slot among the handshakes that are served at once. It comes when
// the peer has proven itself and said who it is: who is silent holds no slot.
func (h *handshake) turn() (leave func(), err error) {
	ctx, cancel := context.WithTimeout(h.conn.Life, rendezvous.HandshakeLimit)
	defer cancel()
	return h.incoming.Enter(ctx)
}
