package session

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"weft/internal/report"
	"weft/transport/rendezvous"
)

// Broken says how the connection ended, as far as the kernel tells.
func (s *Session) Broken(doing string, err error) *report.Error {
	e := report.Errorf(report.Network, "control connection", "%s: %w", doing, rendezvous.Short(err)).With(s.Name).
		Try("the network to the peer failed; look at the link and at the peer's log")
	switch {
	case rendezvous.PeerGone(err):
		e.Cause = report.Peer
		e.Err = s.afterWord(e.Err)
		e.Remedy = "the peer's process ended or was killed; look at its log"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		since := "any more"
		if d, known := s.Conn.Silence(); known {
			since = fmt.Sprintf("for %v", d)
		}
		e.Remedy = fmt.Sprintf("the peer's host did not answer %s: it is down or the network between is cut", since)
	}
	return e
}

// End closes the session for good; its comms learn why.
func (s *Session) End(why *report.Error) {
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return
	}
	s.ended = why
	orderly := s.parting
	if s.idle != nil {
		s.idle.Stop()
	}
	var left []Comm
	for _, m := range s.members {
		m.finish()
		if m.failed != nil { // the peer told its cause before it left
			continue
		}
		m.failed = why
		if m.comm != nil && !m.closed {
			left = append(left, m.comm)
		}
	}
	s.mu.Unlock()
	s.all.forget(s)
	s.all.cfg.Forget(s)
	s.cut(why)
	s.Conn.Close()
	if len(left) == 0 {
		if !orderly && !errors.Is(why, net.ErrClosed) && !rendezvous.PeerGone(why.Err) && s.Says() {
			s.all.cfg.Log.Info(report.Net, "%v", why)
		}
		return
	}
	s.all.cfg.Ended(left, why)
}

// closeDown ends s because its core is closed, which is no news.
func (s *Session) closeDown() {
	s.mu.Lock()
	s.parting = true
	s.mu.Unlock()
	s.End(report.Errorf(report.Host, "control connection", "this process closed it").With(s.Name))
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
