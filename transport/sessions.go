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

// sessions are the control connections of this process, by direction.
type sessions struct {
	core *Core

	mu     sync.Mutex
	out    map[wire.ProcessID]*opening // opened or being opened by this process; protected by mu, as all below
	in     map[wire.ProcessID]*session // opened by others: one of each process
	closed bool                        // what comes now ends at once
}

// opening is a session of this process; s or err is valid once ready is closed.
type opening struct {
	ready chan struct{}
	s     *session // written with sessions.mu held: a session that ends early looks for itself
	err   error
}

func newSessions(c *Core) *sessions {
	return &sessions{core: c, out: map[wire.ProcessID]*opening{}, in: map[wire.ProcessID]*session{}}
}

// get answers the session with process, held, opening it if need be. Of many
// callers one opens; should its way fail, the next tries with a handle of its own.
func (ss *sessions) get(ctx context.Context, process wire.ProcessID, open func() (*session, error)) (*session, error) {
	for {
		ss.mu.Lock()
		o := ss.out[process]
		mine := o == nil
		if mine {
			o = &opening{ready: make(chan struct{})}
			ss.out[process] = o
		}
		ss.mu.Unlock()
		if mine {
			return ss.lead(process, o, open)
		}
		select {
		case <-o.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if o.err == nil && o.s.hold() {
			return o.s, nil
		}
		ss.drop(process, o)
	}
}

func (ss *sessions) lead(process wire.ProcessID, o *opening, open func() (*session, error)) (*session, error) {
	o.err = errors.New("opening the control connection broke off") // should open panic
	defer func() {
		if o.err != nil {
			ss.drop(process, o)
		}
		close(o.ready)
	}()
	s, err := open()
	ss.mu.Lock()
	o.s = s
	closed := ss.closed
	ss.mu.Unlock()
	if err == nil && closed {
		s.closeDown()
	}
	if err == nil && !s.hold() {
		err = errors.New("the control connection ended at once")
	}
	o.err = err
	return s, err
}

func (ss *sessions) drop(process wire.ProcessID, o *opening) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.out[process] == o {
		delete(ss.out, process)
	}
}

// from finds a session that another process has opened; nil: none.
func (ss *sessions) from(process wire.ProcessID, id uint64) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.in[process]; s != nil && s.id == id {
		return s
	}
	return nil
}

// forget takes s out, so that a new connect opens another.
func (ss *sessions) forget(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.in[s.peer.Process] == s {
		delete(ss.in, s.peer.Process)
	}
	if o := ss.out[s.peer.Process]; o != nil && o.s == s {
		delete(ss.out, s.peer.Process)
	}
}

func (ss *sessions) closeAll() {
	ss.mu.Lock()
	ss.closed = true
	var all []*session
	for _, s := range ss.in {
		all = append(all, s)
	}
	for _, o := range ss.out {
		select {
		case <-o.ready:
			if o.s != nil {
				all = append(all, o.s)
			}
		default:
		}
	}
	ss.mu.Unlock()
	for _, s := range all {
		s.closeDown()
	}
}

// closeDown ends s because its core is closed, which is no news.
func (s *session) closeDown() {
	s.mu.Lock()
	s.parting = true
	s.mu.Unlock()
	s.end(report.Errorf(report.Host, "control connection", "this process closed it").With(s.name))
}

// openSession opens the control connection to the process behind a handle,
// along the path that its comm's handshake won.
func (c *Core) openSession(ctx context.Context, h *wire.Handle, p rendezvous.Path, dev *Device, trafficClass int32) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, rendezvous.HandshakeLimit)
	defer cancel()
	w, err := c.net.Attempt(ctx, h, p, wire.RoleControl, tcp.ControlOptions(c.cfg.Knobs, trafficClass), nil)
	if err != nil {
		return nil, fmt.Errorf("opening the control connection: %w", err)
	}
	s, err := c.opened(w, dev)
	if err != nil {
		w.Conn.Close()
		return nil, fmt.Errorf("opening the control connection: %w", err)
	}
	return s, nil
}

// opened is the connecting side of handshake.control.
func (c *Core) opened(w *rendezvous.Won, dev *Device) (*session, error) {
	w.Conn.SetDeadline(time.Now().Add(c.timeout))
	mine := c.hello(dev)
	if err := w.Confirm(mine.Append(nil)); err != nil {
		return nil, err
	}
	rd := wire.NewReader(w.Conn)
	peer, err := w.ReadHello(rd, &mine)
	if err != nil {
		return nil, err
	}
	frame, err := rd.Next()
	if err == nil && wire.KindOf(frame) == wire.KindReject {
		return nil, w.Rejected(peer, frame)
	}
	var devices []wire.Device
	if err == nil {
		devices, frame, err = wire.ReadInventory(rd, frame)
	}
	if err != nil {
		return nil, fmt.Errorf("reading inventory and session: %w", err)
	}
	grant, err := wire.ParseSession(frame)
	if err != nil {
		return nil, err
	}
	w.Conn.SetDeadline(time.Time{})
	s := newSession(c, w.Conn, peer, devices, true)
	s.id, s.key = grant.Session, grant.Key
	go s.read(rd)
	return s, nil
}
