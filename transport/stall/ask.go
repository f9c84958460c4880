package stall

import (
	"time"

	"weft/transport/session"
	"weft/transport/wire"
)

const (
	asksMost = 64          // questions of one look
	asksFrom = time.Second // who has waited less waits for nobody, as others are told
)

// question is one for a peer.
type question struct {
	to *session.Session
	m  *wire.WaitAsk
}

// questions are those of this look, the longest waits first. Who has not replied is
// not asked again, however long that takes: questions would pile up before a process
// that is stopped.
func questions(sorted []*wait, p pace, now time.Time) (all []question) {
	for _, x := range sorted {
		if len(all) == asksMost || x.waited < p.least/2 {
			break
		}
		if x.asked.IsZero() && !x.older {
			x.asked = now
			all = append(all, question{x.session, &wire.WaitAsk{Header: wire.Header{Comm: x.comm}}})
		}
	}
	return all
}

// replies takes in a reply.
func (s *scene) replies(from *session.Session, m *wire.WaitReply, now time.Time) {
	for _, x := range s.waits {
		if x.session == from && x.comm == m.Comm && !x.asked.IsZero() {
			x.reply, x.replied, x.asked = m, now, time.Time{}
		}
	}
}

// describe fills in what this process has done for c, which its peer waits for.
func (s *scene) describe(c Subject, m *wire.WaitReply) {
	l := c.Look()
	m.Groups, m.Owes = l.Next-1, c.Sends() && l.Unsent > 0
	if x := s.comms[c]; x != nil && m.Monitors {
		m.Asks = x.asks
		m.Lacks = c.Sends() && x.state == waits && x.why == wire.WaitReceive && !l.Ready
	}
}

// describeOwn fills in what this process waits for itself: for another process than to, if
// for any.
func (s *scene) describeOwn(to wire.ProcessID, m *wire.WaitReply, now time.Time) {
	var chief *wait
	for _, x := range s.waits {
		if x.waited >= asksFrom && (chief == nil || x.tells(chief, to)) {
			chief = x
		}
	}
	if chief == nil {
		if s.broken != "" {
			m.Root, m.RootWho = wire.RootBroken, s.broken
		}
		return
	}
	m.Why, m.Millis, m.For = chief.why, uint32(chief.waited/time.Millisecond), chief.peer
	if v := &chief.verdict; v.root != wire.RootUnknown && now.Sub(v.known) < rootLife {
		m.Root, m.RootAge, m.RootWho = v.root, uint32(now.Sub(v.known)/time.Millisecond), v.who
	}
}

// tells reports whether x says more than y to a process.
func (x *wait) tells(y *wait, to wire.ProcessID) bool {
	mine, its := x.path.process == to, y.path.process == to
	known, itsKnown := x.verdict.root != wire.RootUnknown, y.verdict.root != wire.RootUnknown
	switch {
	case mine != its:
		return its
	case known != itsKnown:
		return known
	}
	return x.waited > y.waited
}
