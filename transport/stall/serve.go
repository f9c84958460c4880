package stall

import (
	"time"

	"weft/transport/session"
	"weft/transport/wire"
)

// Serve acts on a question of a peer's, or on its reply.
func (m *Monitor) Serve(s *session.Session, b []byte) error {
	if wire.KindOf(b) == wire.KindWaitAsk {
		ask, err := wire.ParseWaitAsk(b)
		if err != nil {
			return err
		}
		c, _ := s.Comm(ask.Comm).(Subject) // nil: it is not built yet, or over
		s.TellLater(m.reply(s, ask.Comm, c))
		return nil
	}
	reply, err := wire.ParseWaitReply(b)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scene.replies(s, &reply, time.Now())
	return nil
}

// reply says what this process has done for a comm that its peer waits for, and
// what it waits for itself.
func (m *Monitor) reply(s *session.Session, id uint64, c Subject) *wire.WaitReply {
	r := &wire.WaitReply{Header: wire.Header{Comm: id}}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	r.Monitors = !m.looked.IsZero() && now.Sub(m.looked) < m.pace.lapse
	r.Moves = r.Monitors && m.scene.moving
	if c != nil {
		m.scene.describe(c, r)
	}
	if r.Monitors {
		m.scene.describeOwn(s.Peer.Process, r, now)
	}
	return r
}
