package transport

import (
	"context"
	"fmt"
	"slices"
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

// readHello reads the peer's hello. Where the versions differ it answers with ours,
// behind what is before it, so that both sides can name each other.
func (h *handshake) readHello(before []byte) error {
	frame, err := h.reader.NextPadded()
	if err != nil {
		return fmt.Errorf("reading hello: %w", err)
	}
	if h.hello, err = wire.ParseHello(frame); err != nil {
		return err
	}
	mine := h.env.hello(h.listener.dev)
	if mismatch := rendezvous.Versions(&mine, &h.hello); mismatch != nil {
		h.conn.Write(mine.Append(before))
		if h.says() {
			report.Say(h.listener.ctx.opts.Log, mismatch.On(h.listener.dev.Name))
		}
		return mismatch
	}
	return nil
}

// greet says frame 2, who this process is, and what it has for the comm, or why there is to be none.
func (h *handshake) greet(in *inbound, pads []byte) (refused string, err error) {
	b := h.f2.Append(nil)
	leave, free := h.incoming.Try()
	if !free || len(pads) > 0 { // frame 2 ends a race: it waits for nobody, and a path of small packets carries it
		if _, err := h.conn.Write(b); err != nil {
			leave()
			return "", fmt.Errorf("sending frame 2: %w", err)
		}
		b = pads
	}
	if !free {
		if leave, err = h.turn(); err != nil {
			refused = "too many others connect at once"
		}
	}
	if refused == "" && !in.register() {
		refused = "the listen is closing, or has as many connections that its host has not accepted as it takes"
	}
	mine := h.env.hello(h.listener.dev)
	b = mine.Append(b)
	if refused != "" {
		m := wire.Reject{Reason: refused}
		b = m.Append(b)
	} else {
		var m wire.Lanes
		for _, w := range slices.Backward(h.ways) {
			w.Lanes(h.listener.dev, &m)
		}
		b = m.Append(b)
	}
	leave()
	if _, err := h.conn.Write(b); err != nil {
		return refused, fmt.Errorf("sending hello: %w", err)
	}
	return refused, nil
}

// turn waits for a slot among the handshakes that are served at once. It comes when
// the peer has said who it is: who is silent holds no slot.
func (h *handshake) turn() (leave func(), err error) {
	ctx, cancel := context.WithTimeout(h.conn.Life, rendezvous.HandshakeLimit)
	defer cancel()
	return h.incoming.Enter(ctx)
}
