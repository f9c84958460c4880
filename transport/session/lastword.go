package session

import (
	"errors"
	"fmt"
	"time"

	"weft/internal/report"
)

// A process that meets an error tells its peers why, and may be gone at once. What
// it said is the cause of all that breaks with it: of the other comms on this
// control connection, and of those on the second that two processes have when each
// has connected to the other. So the end of either is taken for the end of the
// process only when both have been read to their ends.

// LastWord is what the peer has said of a comm whose stream it has ended: that it
// gave it up, or closed it; neither: nothing. The word left before the stream's
// end did, so it is waited for a moment.
func (m *Member) LastWord() (why *report.Error, aborted, closed bool) {
	s := m.Session
	select {
	case <-m.Over:
	case <-time.After(s.all.cfg.Timeout / 100):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.failed != nil && m.failed != s.ended {
		errors.As(m.failed, &why)
		return why, m.aborted, false
	}
	return nil, false, m.closed
}

// hear returns when other, the second control connection with the same process, has
// been read to its end, or shows that it goes on.
func (s *Session) hear(other *Session) {
	if other == nil {
		return
	}
	select {
	case <-other.heard:
	case <-time.After(s.all.cfg.Timeout / 10): // closed by the same exit, the two end together
	}
	other.mu.Lock()
	said := other.said
	other.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if said.at.After(s.said.at) {
		s.said = said
	}
}

// afterWord adds what a peer that is gone had said just before.
func (s *Session) afterWord(err error) error {
	s.mu.Lock()
	said := s.said
	s.mu.Unlock()
	if said.reason == "" || time.Since(said.at) > s.all.cfg.Timeout {
		return err
	}
	return fmt.Errorf("%w, after the peer gave a connection up: %s", err, said.reason)
}

// other is the control connection that the process at the other end of s opened,
// if this one opened s, or else the one that this one opened; nil: none.
func (ss *All) other(s *Session) *Session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.Active {
		return ss.in[s.Peer.Process]
	}
	if o := ss.out[s.Peer.Process]; o != nil {
		return o.s
	}
	return nil
}

// FirstAbort reports whether no other comm of the peer's was given up just before:
// an abort ends all of a communicator's.
func (s *Session) FirstAbort() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	first := s.aborted.IsZero() || now.Sub(s.aborted) > s.all.cfg.Timeout
	s.aborted = now
	return first
}
