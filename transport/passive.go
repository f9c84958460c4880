package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// readers are the 4 KiB buffers of handshakes; nobody gets one before its
// frame 1 is verified.
var readers = sync.Pool{New: func() any { return wire.NewReader(nil) }}

var errNoConfirm = errors.New("frame 3 does not prove the token")

// Proven serves a connection that knows the token.
func (l *Listener) proven(c *rendezvous.Conn, f1 wire.Frame1) {
	rd := readers.Get().(*wire.Reader)
	rd.Reset(c)
	h := &handshake{core: l.ctx.core, listener: l, conn: c, f1: f1, reader: rd}
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

// handshake is the passive side of a connection whose frame 1 is verified.
type handshake struct {
	core     *Core
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
	return h.core.noise.Allows(h.conn.Remote().Addr(), h.listener.ctx.opts.Log)
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
	h.conn.SetDeadline(time.Now().Add(h.core.timeout))
	switch h.f1.Role {
	case wire.RoleStream:
		return h.stream()
	case wire.RoleControl:
		return h.control()
	}
	return h.comm()
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
	mine := h.core.hello(h.listener.dev)
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
	return h.core.incoming.Enter(ctx)
}

// comm serves the first stream of a comm: hello, lanes, then go.
func (h *handshake) comm() error {
	l := h.listener
	streams := l.dev.Streams()
	in := newInbound(h, streams)
	refused := ""
	leave := func() {}
	pads, g := h.core.net.Fill(h.conn, rendezvous.Path{Remote: h.conn.Remote()})
	defer g.Stop()
	err := h.readHello(pads, func(b []byte) []byte {
		in.hello = h.hello
		var late error
		if leave, late = h.turn(); late != nil {
			refused = "too many others connect at once"
		} else if !in.register() {
			refused = "the listen is closing, or has as many connections that its host has not accepted as it takes"
		}
		if refused != "" {
			m := wire.Reject{Reason: refused}
			return m.Append(b)
		}
		m := wire.Lanes{Stash: tcp.Stash, NoRDMA: h.core.whyNoPorts(l.dev), Lanes: []wire.Lane{{Kind: wire.LaneTCP, Streams: uint8(streams), Device: l.dev.Indices()[0], MTU: uint32(l.dev.TCP.MTU)}}}
		for _, i := range l.dev.Indices() {
			if v := h.core.devices.Port(i); v != nil {
				m.Lanes = append(m.Lanes, wire.Lane{Kind: wire.LaneVerbs, Streams: 1, Device: i, MTU: uint32(v.PathMTU())})
			}
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
	in := h.core.findInbound(m.Parent)
	if in == nil || in.listener != h.listener {
		return errors.New("it joins a comm that is not being set up")
	}
	if _, err := h.conn.Write((&wire.Taken{}).Append(nil)); err != nil {
		return fmt.Errorf("sending taken: %w", err)
	}
	return in.join(int(m.Index), h.conn)
}
