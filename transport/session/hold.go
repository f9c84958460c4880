package session

import (
	"time"

	"weft/transport/task"
	"weft/transport/wire"
)

// LingerIdle is how long a control connection outlives its last comm.
const LingerIdle = 30 * time.Second

// Hold keeps the session from ending for want of comms; false when it is over.
func (s *Session) Hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.parting {
		return false
	}
	s.users++
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	return true
}

// Release undoes Hold, and reports whether nobody holds the session any more: then
// the connecting side closes it after a while.
func (s *Session) Release() (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.users == 0 && s.Active && s.ended == nil {
		s.idle = time.AfterFunc(LingerIdle, s.bye)
	}
	return s.users == 0
}

// bye says so if still nobody needs the session.
func (s *Session) bye() {
	defer task.Rescue(s.all.cfg.Log, "control connection", task.Nobody)
	s.mu.Lock()
	if s.users > 0 || s.ended != nil {
		s.mu.Unlock()
		return
	}
	s.parting = true
	s.mu.Unlock()
	s.all.forget(s)
	s.Tell(&wire.Bye{})
	s.Conn.CloseWrite()
}

// Leave removes a comm.
func (s *Session) Leave(m *Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.gone {
		return
	}
	m.gone = true
	delete(s.members, m.ID)
	if !s.Active && len(s.members) == 0 && s.idle == nil && s.ended == nil {
		s.idle = time.AfterFunc(LingerIdle+s.all.cfg.Timeout, s.unused)
		s.all.cfg.Sockets.Unused(s.Conn)
	}
}

// Part ends what a closed comm has of its session; m may be nil.
func (m *Member) Part() {
	if m == nil {
		return
	}
	m.Session.Leave(m)
	if m.Session.Active {
		m.Session.Release()
	}
}
