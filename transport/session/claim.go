package session

import (
	"errors"
	"time"

	"weft/internal/report"
	"weft/transport/task"
)

// A process that connects has one control connection with this one, and has it
// only for its comms:
//
//  1. It is granted when the one before it has ended (Claim).
//  2. It ends unless a comm is attached within T, or is on its way.
//  3. It ends when it has had no comm for a while. The connecting side closes it
//     sooner; the listening side does not rely on that.
//
// Without a comm it has its place among the connections that carry nothing.

// Claim makes s the session of its process. A process ends one before it opens
// the next, but this side may not have read of that yet.
func (ss *All) Claim(s *Session) error {
	limit := time.NewTimer(ss.cfg.Timeout / 2) // the peer waits T for its answer
	defer limit.Stop()
	for {
		ss.mu.Lock()
		old := ss.in[s.Peer.Process]
		if old == nil {
			ss.in[s.Peer.Process] = s
		}
		closed := ss.closed
		ss.mu.Unlock()
		if old == nil {
			if closed {
				s.closeDown()
			}
			return nil
		}
		select {
		case <-old.Life.Done():
		case <-limit.C:
			return errors.New("its process has a control connection with this one already")
		case <-s.Conn.Life.Done():
			return errors.New("it was closed to make room for others")
		}
	}
}

// Vacant gives the session a time in which it must get a comm.
func (s *Session) Vacant(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil && len(s.members) == 0 {
		s.idle = time.AfterFunc(limit, s.unused)
	}
}

// occupied is told when a comm was attached. One that has left already leaves the
// session vacant.
func (s *Session) occupied() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil && len(s.members) > 0 {
		s.idle.Stop()
		s.idle = nil
		s.Conn.Leaves()
	}
}

// unused ends the session if it still has no comm, and none is being set up.
func (s *Session) unused() {
	defer task.Rescue(s.all.cfg.Log, "control connection", task.Nobody)
	coming := s.all.cfg.Coming(&s.Peer.Process)
	s.mu.Lock()
	busy := s.ended != nil || len(s.members) > 0
	if !busy && coming {
		s.idle.Reset(s.all.cfg.Timeout)
	}
	s.mu.Unlock()
	if !busy && !coming {
		s.End(report.Errorf(report.Peer, "control connection", "no connection uses it").With(s.Name))
	}
}
