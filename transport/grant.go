package transport

import (
	"errors"
	"fmt"
	"time"

	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// A process that connects has one control connection with this one, and has it
// only for its comms:
//
//  1. It is granted when the one before it has ended (claim).
//  2. It ends unless a comm is attached within T, or is on its way.
//  3. It ends when it has had no comm for a while. The connecting side closes it
//     sooner; the listening side does not rely on that.
//
// Without a comm it has its place among the connections that carry nothing.

// control serves a control connection: hellos, then what this process has and the
// session. This goroutine goes on as the session's reader.
func (h *handshake) control() error {
	if err := h.conn.Apply(tcp.ControlOptions(h.core.cfg.Knobs, -1)); err != nil {
		return err
	}
	if err := h.readHello(nil, nil); err != nil {
		return err
	}
	if n := h.reader.Buffered(); n != 0 {
		return fmt.Errorf("%d bytes before the session was granted", n)
	}
	s := newSession(h.core, h.conn, &h.hello, nil, false)
	s.id = wire.Random64() | 1
	mine := h.core.hello(h.listener.dev)
	answer := mine.Append(nil)
	if err := h.core.sessions.claim(s); err != nil {
		m := wire.Reject{Reason: err.Error()}
		h.conn.Write(m.Append(answer))
		return err
	}
	inv := h.core.inventory()
	grant := wire.Session{Header: wire.Header{Session: s.id}, Key: s.drawKey()}
	if _, err := h.conn.Write(grant.Append(inv.Append(answer))); err != nil {
		s.end(s.broken("sending session", err))
		return nil
	}
	h.conn.SetDeadline(time.Time{})
	s.vacant(h.core.timeout)
	go s.read(wire.NewReader(h.conn))
	return nil
}

// claim makes s the session of its process. A process ends one before it opens
// the next, but this side may not have read of that yet.
func (ss *sessions) claim(s *session) error {
	limit := time.NewTimer(ss.core.timeout / 2) // the peer waits T for its answer
	defer limit.Stop()
	for {
		ss.mu.Lock()
		old := ss.in[s.peer.Process]
		if old == nil {
			ss.in[s.peer.Process] = s
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
		case <-old.life.Done():
		case <-limit.C:
			return errors.New("its process has a control connection with this one already")
		case <-s.conn.Life.Done():
			return errors.New("it was closed to make room for others")
		}
	}
}

// vacant gives the session a time in which it must get a comm.
func (s *session) vacant(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil && len(s.members) == 0 {
		s.idle = time.AfterFunc(limit, s.unused)
	}
}

// occupied is told when a comm was attached. One that has left already leaves the
// session vacant.
func (s *session) occupied() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil && len(s.members) > 0 {
		s.idle.Stop()
		s.idle = nil
		s.conn.Leaves()
	}
}

// unused ends the session if still it has no comm, and none on its way.
func (s *session) unused() {
	defer task.Rescue(s.core.cfg.Log, "control connection", task.Nobody)
	coming := s.core.settingUp(&s.peer.Process)
	s.mu.Lock()
	busy := s.ended != nil || len(s.members) > 0
	if !busy && coming {
		s.idle.Reset(s.core.timeout)
	}
	s.mu.Unlock()
	if !busy && !coming {
		s.end(report.Errorf(report.Peer, "control connection", "no connection uses it").With(s.name))
	}
}

// settingUp reports whether a comm of the process is on its way.
func (c *Core) settingUp(process *wire.ProcessID) bool {
	c.inbound.Lock()
	defer c.inbound.Unlock()
	for _, in := range c.inbound.byNonce {
		if in.hello.Process == *process {
			return true
		}
	}
	return false
}
