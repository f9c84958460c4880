package session

import (
	"sync"

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
