package transport

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

// word is why the peer last gave a connection up.
type word struct {
	reason string
	at     time.Time
}

// lastWord is what the peer has said of c, whose stream it has ended: that it closed
// c, or gave it up; nil: nothing. The word left before the stream's end did, so it
// is waited for a moment. again: it is one of an abort that has been told.
func (c *Comm) lastWord() (why *report.Error, again bool) {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m == nil {
		return nil, false
	}
	s := m.session
	select {
	case <-m.over:
	case <-time.After(s.core.timeout / 100):
	}
	s.mu.Lock()
	failed, abort, closed, ended := m.failed, m.aborted, m.closed, s.ended
	s.mu.Unlock()
	switch {
	case failed != nil && failed != ended:
		errors.As(failed, &why)
	case closed:
		why, abort = aborted(c.peer, c.verb(), "the peer closed the connection").On(c.dev.Name), true
	}
	return why, abort && !s.firstAbort()
}

// hear returns when other, the second control connection with the same process, has
// been read to its end, or shows that it goes on.
func (s *session) hear(other *session) {
	if other == nil {
		return
	}
	select {
	case <-other.heard:
	case <-time.After(s.core.timeout / 10): // closed by the same exit, the two end together
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
func (s *session) afterWord(err error) error {
	s.mu.Lock()
	said := s.said
	s.mu.Unlock()
	if said.reason == "" || time.Since(said.at) > s.core.timeout {
		return err
	}
	return fmt.Errorf("%w, after the peer gave a connection up: %s", err, said.reason)
}

// other is the control connection that the process at the other end of s opened,
// if this one opened s, or else the one that this one opened; nil: none.
func (ss *sessions) other(s *session) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.active {
		return ss.in[s.peer.Process]
	}
	if o := ss.out[s.peer.Process]; o != nil {
		return o.s
	}
	return nil
}
