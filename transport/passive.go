package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

var errNoConfirm = errors.New("frame 3 does not prove the token")

// A connection on the listening side, from the first frame to the comm that accept
// hands out, in this order:
//
//	passive.go    what each kind of connection says, in its order
//	handshake.go  the hellos of both sides, and what the host offers
//	serve.go      frame 3 and offers, until the connecting side says go or gives up
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
		if !errors.Is(err, rendezvous.ErrWithdrawn) && !errors.Is(err, net.ErrClosed) && !l.over() && h.says() { // closed here: by whoever knows why
			l.ctx.opts.Log.Info(report.Net, "%v", report.Errorf(report.Peer, "accept", "%s connection: %w", f1.Role, err).
				On(l.dev.Name).With(h.peer()))
		}
		c.Close()
	}
}

// answer serves the role. It returns when the connection has found its owner, or
// failed.
func (h *handshake) answer() error {
	h.f2.Nonce = wire.NewNonce()
	h.f2.Sign(&h.listener.reach.Token, &h.f1)
	switch h.f1.Role {
	case wire.RoleStream:
		return h.stream()
	case wire.RoleControl:
		return h.control()
	}
	return h.comm()
}

// confirmed reads frame 3, and not a byte more.
func (h *handshake) confirmed() error {
	var b [wire.Frame3Size]byte
	if _, err := io.ReadFull(h.conn, b[:]); err != nil {
		if rendezvous.PeerGone(err) {
			return rendezvous.ErrWithdrawn
		}
		return fmt.Errorf("reading frame 3: %w", err)
	}
	return h.confirms(b[:])
}

// confirms judges frame 3.
func (h *handshake) confirms(b []byte) error {
	f3, err := wire.ParseFrame3(b)
	if err != nil {
		return err
	}
	if !f3.Verify(&h.listener.reach.Token, &h.f1, &h.f2) {
		return errNoConfirm
	}
	return nil
}

// comm serves the first stream of a comm: hellos and lanes, then go.
func (h *handshake) comm() error {
	if err := h.readHello(h.f2.Append(nil)); err != nil {
		if rendezvous.PeerGone(err) {
			return rendezvous.ErrWithdrawn
		}
		return err
	}
	if n := h.reader.Buffered(); n != 0 {
		return fmt.Errorf("%d bytes before lanes were agreed", n)
	}
	h.conn.SetDeadline(time.Now().Add(h.timeout))
	in := newInbound(h.listener, h.conn, h.f1, h.f2)
	in.hello = h.hello
	pads, g := h.net.Fill(h.conn, rendezvous.Path{Remote: h.conn.Remote()}, wire.Frame2Size)
	defer g.Stop()
	refused, err := h.greet(in, pads)
	if err == nil && refused != "" {
		err = errors.New("refused: " + refused)
	}
	if err != nil {
		if in.abort(nil); rendezvous.PeerGone(err) {
			return rendezvous.ErrWithdrawn
		}
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
	if _, err := h.conn.Write((&wire.Taken{}).Append(h.f2.Append(nil))); err != nil {
		return fmt.Errorf("sending taken: %w", err)
	}
	if err := h.confirmed(); err != nil {
		return err
	}
	h.conn.SetDeadline(time.Now().Add(h.timeout))
	return in.join(int(m.Index), h.conn)
}
