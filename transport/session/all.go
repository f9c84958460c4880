package session

import (
	"context"
	"errors"
	"sync"

	"weft/internal/report"
	"weft/transport/wire"
)

// All are the control connections of this process, by direction.
type All struct {
	cfg Config

	mu     sync.Mutex
	out    map[wire.ProcessID]*opening // opened or being opened by this process; protected by mu, as all below
	in     map[wire.ProcessID]*Session // opened by others: one of each process
	closed bool                        // what comes now ends at once
}

// opening is a session of this process; s or err is valid once ready is closed.
type opening struct {
	ready chan struct{}
	s     *Session // written with sessions.mu held: a session that ends early looks for itself
	err   error
}

// NewAll returns the sessions of a process, which has none yet.
func NewAll(c Config) *All {
	return &All{cfg: c, out: map[wire.ProcessID]*opening{}, in: map[wire.ProcessID]*Session{}}
}

// Get returns the session with process, held, opening it if need be. Of many
// callers one opens; should its way fail, the next tries with a handle of its own.
func (ss *All) Get(ctx context.Context, process wire.ProcessID, open func() (*Session, error)) (*Session, error) {
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
		if o.err == nil && o.s.Hold() {
			return o.s, nil
		}
		ss.drop(process, o)
	}
}

func (ss *All) lead(process wire.ProcessID, o *opening, open func() (*Session, error)) (*Session, error) {
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
	if err == nil && !s.Hold() {
		err = errors.New("the control connection ended at once")
	}
	o.err = err
	return s, err
}

func (ss *All) drop(process wire.ProcessID, o *opening) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.out[process] == o {
		delete(ss.out, process)
	}
}

// From finds a session that another process has opened; nil: none.
func (ss *All) From(process wire.ProcessID, id uint64) *Session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.in[process]; s != nil && s.ID == id {
		return s
	}
	return nil
}

// forget takes s out, so that a new connect opens another.
func (ss *All) forget(s *Session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.in[s.Peer.Process] == s {
		delete(ss.in, s.Peer.Process)
	}
	if o := ss.out[s.Peer.Process]; o != nil && o.s == s {
		delete(ss.out, s.Peer.Process)
	}
}

// open lists the sessions that others have opened and those of this process.
func (ss *All) open() (in, out []*Session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.in {
		in = append(in, s)
	}
	for _, o := range ss.out {
		select {
		case <-o.ready:
			if o.s != nil {
				out = append(out, o.s)
			}
		default:
		}
	}
	return in, out
}

// CloseAll ends them, and those that are being opened.
func (ss *All) CloseAll() {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	in, out := ss.open()
	for _, s := range append(in, out...) {
		s.closeDown()
	}
}

// closeDown ends s because its core is closed, which is no news.
func (s *Session) closeDown() {
	s.mu.Lock()
	s.parting = true
	s.mu.Unlock()
	s.End(report.Errorf(report.Host, "control connection", "this process closed it").With(s.Name))
}
