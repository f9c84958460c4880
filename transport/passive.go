package transport

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

var errNoConfirm = errors.New("frame 3 does not prove the token")

// A connection on the listening side, from the first frame to the comm that accept
// hands out, in this order:
//
//	passive.go    its frames until both sides have proven themselves, then what the host offers
//	handshake.go  the connecting side's hello, and which streams it has
//	serve.go      its offers, until it says go or gives up
//	inbound.go    its streams together, a session for it, and the comm
//	listener.go   the comms that wait for an accept

// proven serves a connection that knows the token.
func (l *Listener) proven(c *rendezvous.Conn, f1 wire.Frame1) {
	rd := readers.Get().(*wire.Reader)
	rd.Reset(c)
	h := &handshake{env: l.ctx.env, listener: l, conn: c, f1: f1, reader: rd}
	err := h.answer()
	rd.Reset(nil)
	readers.Put(rd)
	if err != nil {
		if !errors.Is(err, rendezvous.ErrWithdrawn) && !l.over() && h.says() {
			l.ctx.opts.Log.Info(report.Net, "%v", report.Errorf(report.Peer, "accept", "%s connection: %w", f1.Role, err).
				On(l.dev.Name).With(h.peer()))
		}
		c.Close()
	}
}

// answer sends frame 2 and serves the role. It returns when the connection has
// found its owner, or failed.
func (h *handshake) answer() error {
	h.f2.Nonce = wire.NewNonce()
	h.f2.Sign(&h.listener.reach.Token, &h.f1)
	if _, err := h.conn.Write(h.f2.Append(nil)); err != nil {
		return fmt.Errorf("sending frame 2: %w", err)
	}
	b, err := h.reader.Bytes(wire.Frame3Size)
	if err != nil {
		if rendezvous.PeerGone(err) {
			return rendezvous.ErrWithdrawn
		}
		return fmt.Errorf("reading frame 3: %w", err)
	}
	f3, err := wire.ParseFrame3(b)
	if err != nil {
		return err
	}
	if !f3.Verify(&h.listener.reach.Token, &h.f1, &h.f2) {
		return errNoConfirm
	}
	h.conn.SetDeadline(time.Now().Add(h.timeout))
	switch h.f1.Role {
	case wire.RoleStream:
		return h.stream()
	case wire.RoleControl:
		return h.control()
	}
	return h.comm()
}

// comm serves the first stream of a comm: hello, lanes, then go.
func (h *handshake) comm() error {
	l := h.listener
	in := newInbound(l, h.conn, h.f1, h.f2)
	refused := ""
	leave := func() {}
	pads, g := h.net.Fill(h.conn, rendezvous.Path{Remote: h.conn.Remote()})
	defer g.Stop()
	err := h.readHello(pads, func(b []byte) []byte {
		in.hello = h.hello
		var err error
		if leave, err = h.turn(); err != nil {
			refused = "too many others connect at once"
		} else if !in.register() {
			refused = "the listen is closing, or has as many connections that its host has not accepted as it takes"
		}
		if refused != "" {
			m := wire.Reject{Reason: refused}
			return m.Append(b)
		}
		var m wire.Lanes
		for _, w := range slices.Backward(h.ways) {
			w.Lanes(l.dev, &m)
		}
		return m.Append(b)
	})
	leave()
	if err != nil {
		in.abort(nil)
		return err
	}
	if refused != "" {
		return errors.New("refused: " + refused)
	}
	if h.reader.Buffered() != 0 {
		err := fmt.Errorf("%d bytes before lanes were agreed", h.reader.Buffered())
		in.abort(err)
		return err
	}
	if err = h.last(in); err != nil {
		if g.Stop() {
			err = &streamError{&rendezvous.NarrowError{Path: rendezvous.Path{Remote: h.conn.Remote()}, MTU: g.MTU}}
		}
		if lost := (*streamError)(nil); errors.As(err, &lost) {
			in.abort(nil)
		} else {
			in.abort(err)
		}
	}
	return err
}

// stream serves a further stream: it joins the comm whose nonce it names.
func (h *handshake) stream() error {
	frame, err := h.reader.NextPadded()
	if err != nil {
		return fmt.Errorf("reading stream: %w", err)
	}
	m, err := wire.ParseStream(frame)
	if err != nil {
		return err
	}
	if n := h.reader.Buffered(); n != 0 {
		return fmt.Errorf("%d bytes before the stream was taken", n)
	}
	in, _ := h.setupOf(m.Parent).(*inbound)
	if in == nil || in.listener != h.listener {
		return errors.New("it joins a comm that is not being set up")
	}
	if _, err := h.conn.Write((&wire.Taken{}).Append(nil)); err != nil {
		return fmt.Errorf("sending taken: %w", err)
	}
	return in.join(int(m.Index), h.conn)
}
