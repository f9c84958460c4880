package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// readers are the 4 KiB buffers of handshakes; nobody gets one before its
// frame 1 is verified.
var readers = sync.Pool{New: func() any { return wire.NewReader(nil) }}

var (
	errUnknownListen = errors.New("frame 1 names no open listen")
	errWrongToken    = errors.New("frame 1 does not prove the token")
	errReplay        = errors.New("frame 1 was seen before (replay)")
	errNoConfirm     = errors.New("frame 3 does not prove the token")
)

// errWithdrawn is no news: of several attempts of a connect the quickest goes on,
// and the others end as if nobody had called, or come when the listen is closed. A
// connect that fails says so itself.
var errWithdrawn = errors.New("the connecting side gave this attempt up")

// receive runs the passive side of one connection: silence until frame 1
// proves the token, then frame 2, then what the role asks for.
func (r *rendezvous) receive(s *socket, c *conn) {
	defer task.Rescue(r.core.cfg.Log, "accept", func(error) { c.Close() })
	c.SetDeadline(time.Now().Add(handshakeLimit))
	f1, l, err := r.frame1(c)
	if err != nil {
		if !errors.Is(err, errWithdrawn) {
			r.core.noise.dropped(c.remote().Addr(), s.addr.String(), err)
		}
		c.Close()
		return
	}
	known := r.proven.enter(c)
	c.leaves()
	if known == nil {
		c.Close()
		return
	}
	c.waits(known)
	rd := readers.Get().(*wire.Reader)
	rd.Reset(c)
	h := &handshake{core: r.core, listener: l, conn: c, f1: f1, reader: rd}
	err = h.answer()
	rd.Reset(nil)
	readers.Put(rd)
	if err != nil {
		if !errors.Is(err, errWithdrawn) && !l.over() && h.says() {
			l.ctx.opts.Log.Info(report.Net, "%v", report.Errorf(report.Peer, "accept", "%s connection: %w", f1.Role, err).
				On(l.dev.Name).With(h.peer()))
		}
		c.Close()
	}
}

// frame1 reads and judges the first 64 bytes. Bytes that cannot be a frame 1
// end the connection as soon as they are there.
func (r *rendezvous) frame1(c *conn) (wire.Frame1, *Listener, error) {
	var b [wire.Frame1Size]byte
	for got := 0; got < len(b); {
		n, err := c.Read(b[got:])
		if got += n; got == 0 && err != nil && peerGone(err) {
			return wire.Frame1{}, nil, errWithdrawn
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
		return wire.Frame1{}, nil, errWithdrawn
	case l == nil:
		return wire.Frame1{}, nil, errUnknownListen
	case !f1.Verify(&l.token):
		return wire.Frame1{}, nil, errWrongToken
	case !l.fresh(f1.Nonce):
		return wire.Frame1{}, nil, errReplay
	}
	return f1, l, nil
}

// handshake is the passive side of a connection whose frame 1 is verified.
type handshake struct {
	core     *Core
	listener *Listener
	conn     *conn
	f1       wire.Frame1
	f2       wire.Frame2
	reader   *wire.Reader
	hello    wire.Hello // the peer's
}

func (h *handshake) peer() string {
	if h.hello.Host == "" {
		return h.conn.remote().String()
	}
	return peerName(&h.hello, h.conn)
}

// says reports whether this connection may have one more line in the log.
func (h *handshake) says() bool {
	return h.core.noise.allows(h.conn.remote().Addr(), h.listener.ctx.opts.Log)
}

// answer sends frame 2 and serves the role. It returns when the connection has
// found its owner, or failed.
func (h *handshake) answer() error {
	h.f2.Nonce = wire.NewNonce()
	h.f2.Sign(&h.listener.token, &h.f1)
	if _, err := h.conn.Write(h.f2.Append(nil)); err != nil {
		return fmt.Errorf("sending frame 2: %w", err)
	}
	b, err := h.reader.Bytes(wire.Frame3Size)
	if err != nil {
		if peerGone(err) {
			return errWithdrawn
		}
		return fmt.Errorf("reading frame 3: %w", err)
	}
	f3, err := wire.ParseFrame3(b)
	if err != nil {
		return err
	}
	if !f3.Verify(&h.listener.token, &h.f1, &h.f2) {
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
	if mismatch := versions(&mine, &h.hello); mismatch != nil {
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
	ctx, cancel := context.WithTimeout(h.conn.life, handshakeLimit)
	defer cancel()
	return h.core.incoming.Enter(ctx)
}

// comm serves the first stream of a comm: hello, lanes, then go.
func (h *handshake) comm() error {
	l := h.listener
	streams := l.dev.streams()
	in := newInbound(h, streams)
	refused := ""
	leave := func() {}
	pads, g := h.core.fill(h.conn, path{remote: h.conn.remote()})
	defer g.stop()
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
		m := wire.Lanes{Stash: tcp.Stash, NoRDMA: h.core.whyNoPorts(l.dev), Lanes: []wire.Lane{{Kind: wire.LaneTCP, Streams: uint8(streams), Device: l.dev.indices()[0], MTU: uint32(l.dev.TCP.MTU)}}}
		for _, i := range l.dev.indices() {
			if v := h.core.port(i); v != nil {
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
		if g.stop() {
			err = &streamError{&narrowError{path{remote: h.conn.remote()}, g.mtu}}
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

// versions tells two hellos that cannot work together, naming both hosts.
func versions(mine, theirs *wire.Hello) *report.Error {
	if mine.Speaks == theirs.Speaks {
		return nil
	}
	return report.Errorf(report.Usage, "handshake", "%s runs weft %s (wire version %d), %s runs weft %s (wire version %d)",
		mine.Host, build(mine), mine.Speaks, theirs.Host, build(theirs), theirs.Speaks).
		Try("install the same weft on both hosts")
}

func build(h *wire.Hello) string {
	if h.Build == "" {
		return "of an unnamed build"
	}
	return h.Build
}

// endName is how messages call the device and process at the other end of a comm.
func endName(h *wire.Hello, c *conn) string {
	return fmt.Sprintf("%s of %s", h.Name, peerName(h, c))
}

// peerName is how messages call the process at the other end of c.
func peerName(h *wire.Hello, c *conn) string {
	return fmt.Sprintf("%s pid %d (%s)", h.Host, h.PID, c.remote())
}
