// Package hostile plays a peer that has the token, speaks weft's wire protocol, and breaks it where its caller says so.
package hostile

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"time"

	"weft/transport/wire"
)

// Peer is a process that got hold of a listen's handle.
type Peer struct {
	Handle  wire.Handle
	Process wire.ProcessID // that it claims to be
	Limit   time.Duration  // of every read and write
}

// New is a peer with a process id of its own.
func New(h wire.Handle, limit time.Duration) *Peer {
	p := &Peer{Handle: h, Limit: limit}
	rand.Read(p.Process[:])
	return p
}

// Conn is a connection to the listen.
type Conn struct {
	net.Conn
	F1 wire.Frame1
	F2 wire.Frame2
	*wire.Reader
}

// ErrRejected says that the listener ended the handshake after the proof, with a reason.
var ErrRejected = errors.New("rejected")

// Dial connects, and says nothing.
func (p *Peer) Dial() (*Conn, error) {
	k, err := net.DialTimeout("tcp", p.Handle.Addrs[0].AddrPort().String(), p.Limit)
	if err != nil {
		return nil, err
	}
	k.SetDeadline(time.Now().Add(p.Limit))
	c := &Conn{Conn: k, Reader: wire.NewReader(k)}
	c.F1 = wire.Frame1{Version: wire.Version, ListenID: p.Handle.ListenID}
	rand.Read(c.F1.Nonce[:])
	return c, nil
}

// Frame1 is what begins a connection.
func (p *Peer) Frame1(c *Conn, role wire.Role) []byte {
	c.F1.Role = role
	c.F1.Sign(&p.Handle.Token)
	return c.F1.Append(nil)
}

// Ask sends frame 1, where a comm begins with hello, and takes in frame 2.
func (p *Peer) Ask(c *Conn, role wire.Role) error {
	b := p.Frame1(c, role)
	if role == wire.RoleComm {
		b = append(b, p.Hello()...)
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	b, err := c.Bytes(wire.Frame2Size)
	if err != nil {
		return err
	}
	if c.F2, err = wire.ParseFrame2(b); err == nil && !c.F2.Verify(&p.Handle.Token, &c.F1) {
		err = errors.New("the listener does not prove the token")
	}
	return err
}

// Confirm is frame 3.
func (p *Peer) Confirm(c *Conn) []byte {
	var f3 wire.Frame3
	f3.Sign(&p.Handle.Token, &c.F1, &c.F2)
	return f3.Append(nil)
}

// Open takes a new connection up to frame 2.
func (p *Peer) Open(role wire.Role) (*Conn, error) {
	c, err := p.Dial()
	if err != nil {
		return nil, err
	}
	if err := p.Ask(c, role); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Prove takes a new connection through frames 1 to 3 and sends rest behind them.
func (p *Peer) Prove(role wire.Role, rest []byte) (*Conn, error) {
	c, err := p.Open(role)
	if err != nil {
		return nil, err
	}
	if _, err = c.Write(append(p.Confirm(c), rest...)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Hello is who it says it is.
func (p *Peer) Hello() []byte {
	h := wire.Hello{Speaks: wire.Version, PID: 1, Process: p.Process, Host: "elsewhere", Build: "test", Name: "eth9"}
	return h.Append(nil)
}

// Control is a control connection that was granted.
type Control struct {
	*Conn
	Session uint64
	told    uint64
}

// Control opens a control connection.
func (p *Peer) Control() (*Control, error) {
	c, err := p.Prove(wire.RoleControl, p.Hello())
	if err != nil {
		return nil, err
	}
	for {
		b, err := c.Next()
		if err != nil {
			c.Close()
			return nil, err
		}
		switch wire.KindOf(b) {
		case wire.KindReject:
			c.Close()
			return nil, ErrRejected
		case wire.KindHello, wire.KindInventory:
			continue
		}
		s, err := wire.ParseSession(b)
		if err != nil {
			c.Close()
			return nil, err
		}
		return &Control{Conn: c, Session: s.Session}, nil
	}
}

// Message is what a control connection carries.
type Message interface{ Append([]byte) []byte }

// Frames appends messages as the session numbers them.
func (c *Control) Frames(dst []byte, all ...Message) []byte {
	for _, m := range all {
		start := len(dst)
		dst = m.Append(dst)
		c.told++
		wire.Stamp(dst[start:], c.Session, c.told)
	}
	return dst
}

// Tell sends messages.
func (c *Control) Tell(all ...Message) error {
	_, err := c.Write(c.Frames(nil, all...))
	return err
}

// Begin opens the first stream of a comm, as far as the lanes.
func (p *Peer) Begin() (*Conn, error) {
	c, err := p.Open(wire.RoleComm)
	if err != nil {
		return nil, err
	}
	for _, next := range []func() ([]byte, error){c.NextPadded, c.Next} { // hello, lanes
		b, err := next()
		if err == nil && wire.KindOf(b) == wire.KindReject {
			err = ErrRejected
		}
		if err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Attach binds what Begin began to a session.
func (p *Peer) Attach(c *Conn, s *Control, id uint64) *wire.Attach {
	a := &wire.Attach{Header: wire.Header{Session: s.Session, Comm: id}}
	a.Sign(&p.Handle.Token, &c.F1, &c.F2)
	return a
}

// Comm makes a comm of one TCP stream.
func (p *Peer) Comm(s *Control, id uint64) (*Conn, error) {
	c, err := p.Begin()
	if err != nil {
		return nil, err
	}
	if err := p.Finish(c, s, id); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Finish attaches what Begin began, and says go.
func (p *Peer) Finish(c *Conn, s *Control, id uint64) error {
	if err := s.Tell(p.Attach(c, s, id)); err != nil {
		return err
	}
	last := wire.Go{Header: wire.Header{Session: s.Session, Comm: id}}
	_, err := c.Write(last.Append(p.Confirm(c)))
	return err
}

// CloseWrite says that nothing more comes.
func (c *Conn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// Drained reports whether the other side closes c within the limit, whatever it says before.
func (c *Conn) Drained(limit time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(limit))
	_, err := io.Copy(io.Discard, c.Conn)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}
