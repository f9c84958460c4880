package session

import (
	"sync"

	"weft/internal/report"
	"weft/transport/wire"
)

// Member is one comm of a session.
type Member struct {
	Session *Session
	ID      uint64
	Over    chan struct{} // closed when the peer has closed it or given it up, or the session has ended

	once    sync.Once
	comm    Comm  // nil until it is built; protected by Session.mu, as all below
	closed  bool  // the peer closed it in good order
	failed  error // why it is over otherwise
	aborted bool  // because the peer's host gave it up
	gone    bool
}

// finish says that the peer needs nothing of the comm any more.
func (m *Member) finish() { m.once.Do(func() { close(m.Over) }) }

// Header begins a message about the comm.
func (m *Member) Header() wire.Header { return wire.Header{Comm: m.ID} }

// Carry makes c the comm that is told what the peer says, and returns what it
// has said before: an error, or that it closed in good order.
func (m *Member) Carry(c Comm) (failed error, closed bool) {
	m.Session.mu.Lock()
	defer m.Session.mu.Unlock()
	m.comm = c
	return m.failed, m.closed
}

// ClosedWell reports whether the peer has closed the comm in good order.
func (m *Member) ClosedWell() bool {
	m.Session.mu.Lock()
	defer m.Session.mu.Unlock()
	return m.closed && m.failed == nil
}

// Stands reports whether the peer has not closed the comm, and the session is there.
func (m *Member) Stands() bool {
	m.Session.mu.Lock()
	defer m.Session.mu.Unlock()
	return !m.closed && m.Session.ended == nil
}

// ErrAborted is what a comm ends with whose peer was given up by its host.
func ErrAborted(peer, op, format string, args ...any) *report.Error {
	return report.Errorf(report.Peer, op, format, args...).With(peer).
		Try("this is an abort, or the peer's ranks were done; if neither was meant, its process says why before that")
}
