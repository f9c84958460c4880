package session

import (
	"fmt"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/wire"
)

// Start begins to serve what the peer says, until the connection ends.
func (s *Session) Start(rd *wire.Reader) { go s.read(rd) }

// read is a session's one goroutine.
func (s *Session) read(rd *wire.Reader) {
	defer task.Rescue(s.all.cfg.Log, "control connection", func(err error) {
		s.End(report.Errorf(report.Internal, "control connection", "%w", err).With(s.Name))
	})
	for {
		b, err := rd.Next()
		if err != nil {
			other := s.all.other(s) // it waits for this one, and is forgotten soon after
			close(s.heard)
			if rendezvous.PeerGone(err) {
				s.hear(other)
			}
			s.End(s.Broken("reading", err))
			return
		}
		if err := s.serve(b); err != nil {
			s.End(report.Errorf(report.Peer, "control connection", "%w", err).With(s.Name).
				Try("both hosts must run the same weft"))
			return
		}
	}
}

// serve acts on one message. A message about a comm that is not here any more
// is no error: the two sides close at different times.
func (s *Session) serve(b []byte) error {
	switch k := wire.KindOf(b); k {
	case wire.KindAttach:
		m, err := wire.ParseAttach(b)
		if err != nil {
			return err
		}
		return s.onAttach(&m)
	case wire.KindClosed:
		m, err := wire.ParseClosed(b)
		if err != nil {
			return err
		}
		var c Comm
		s.withMember(m.Comm, func(mb *Member) {
			if !mb.closed {
				c = mb.comm
			}
			mb.closed = true
			mb.finish()
		})
		if c != nil {
			c.PeerClosed()
		}
	case wire.KindRefused:
		m, err := wire.ParseRefused(b)
		if err != nil {
			return err
		}
		if c := s.Comm(m.Comm); c != nil {
			c.PeerRefused(s, &m)
		}
	case wire.KindFailed:
		m, err := wire.ParseFailed(b)
		if err != nil {
			return err
		}
		s.onFailed(&m)
	case wire.KindBye:
		if _, err := wire.ParseBye(b); err != nil {
			return err
		}
		s.mu.Lock()
		s.parting = true
		s.mu.Unlock()
	default:
		if serve := s.all.cfg.Serve[k]; serve != nil {
			return serve(s, b)
		}
		return fmt.Errorf("message of %s: %w", k, wire.ErrMalformed)
	}
	return nil
}

func (s *Session) onAttach(a *wire.Attach) error {
	if s.Active {
		return fmt.Errorf("attach from the listening side: %w", wire.ErrMalformed)
	}
	m := s.Join(a.Comm)
	if m == nil {
		return fmt.Errorf("comm %d attached twice: %w", a.Comm, wire.ErrMalformed)
	}
	why := s.all.cfg.Attach(m, a)
	if why == nil {
		s.occupied()
		return nil
	}
	s.Leave(m)
	s.Tell(&wire.Failed{Header: wire.Header{Comm: a.Comm}, Reason: why.Error()})
	return nil
}

func (s *Session) onFailed(f *wire.Failed) {
	err := report.Errorf(report.Peer, "comm", "the peer gave the connection up: %s", f.Reason).With(s.Name).
		Try("look at the peer's log")
	if f.Aborted {
		err = ErrAborted(s.Name, "comm", "the peer's host gave the connection up with requests in flight: %s", f.Reason)
	} else {
		s.mu.Lock()
		s.said = word{f.Reason, time.Now()}
		s.mu.Unlock()
	}
	var c Comm
	s.withMember(f.Comm, func(m *Member) {
		if m.failed == nil {
			m.failed, m.aborted, c = err, f.Aborted, m.comm
		}
		m.finish()
	})
	if c != nil {
		c.PeerGaveUp(err, f.Aborted)
	}
}
