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

// asks are the questions of this look, the longest waits first; w.mu is held. Who
// has not replied is not asked again, however long that takes: questions would
// pile up before a process that is stopped.
func (w *Watcher) asks(sorted []*wait, now time.Time) (ask []question) {
	for _, x := range sorted {
		if len(ask) == asksMost || x.waited < w.least/2 {
			break
		}
		if x.asked.IsZero() && x.session.Peer.Flags&wire.FlagWaits != 0 {
			x.asked = now
			ask = append(ask, question{x.session, &wire.WaitAsk{Header: wire.Header{Comm: x.comm}}})
		}
	}
	return ask
}

// Serve acts on a question of a peer's, or on its reply.
func (w *Watcher) Serve(s *session.Session, b []byte) error {
	if wire.KindOf(b) == wire.KindWaitAsk {
		m, err := wire.ParseWaitAsk(b)
		if err != nil {
			return err
		}
		c, _ := s.Comm(m.Comm).(Subject) // nil: it is not built yet, or over
		s.TellLater(w.reply(s, m.Comm, c))
		return nil
	}
	m, err := wire.ParseWaitReply(b)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.waits {
		if x.session == s && x.comm == m.Comm && !x.asked.IsZero() {
			x.reply, x.replied, x.asked = &m, time.Now(), time.Time{}
		}
	}
	return nil
}

// reply says what this process has done for a comm that its peer waits for, and
// what it waits for itself: for another process than the peer, if for any.
func (w *Watcher) reply(s *session.Session, id uint64, c Subject) *wire.WaitReply {
	m := &wire.WaitReply{Header: wire.Header{Comm: id}}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	m.Watches = !w.looked.IsZero() && now.Sub(w.looked) < w.lapse
	m.Moves = m.Watches && w.moving
	if c != nil {
		l := c.Look()
		m.Groups, m.Owes = l.Next-1, c.Sends() && l.Unsent > 0
		if x := w.comms[c]; x != nil && m.Watches {
			m.Asks = x.asks
			m.Lacks = c.Sends() && x.state == waits && x.why == wire.WaitReceive && !l.Ready
		}
	}
	var chief *wait
	for _, x := range w.waits {
		if m.Watches && x.waited >= asksFrom && (chief == nil || x.tells(chief, s.Peer.Process)) {
			chief = x
		}
	}
	switch {
	case chief == nil && m.Watches && w.broken != "":
		m.End, m.EndWho = wire.EndBroken, w.broken
		fallthrough
	case chief == nil:
		return m
	}
	m.Why, m.Millis, m.For = chief.why, uint32(chief.waited/time.Millisecond), nameOf(chief.session)
	if v := &chief.verdict; v.end != wire.EndUnknown && now.Sub(v.known) < endLife {
		m.End, m.EndAge, m.EndWho = v.end, uint32(now.Sub(v.known)/time.Millisecond), v.who
	}
	return m
}

// tells reports whether x says more than y to a process.
func (x *wait) tells(y *wait, to wire.ProcessID) bool {
	mine, its := x.key.process == to, y.key.process == to
	known, itsKnown := x.verdict.end != wire.EndUnknown, y.verdict.end != wire.EndUnknown
	switch {
	case mine != its:
		return its
	case known != itsKnown:
		return known
	}
	return x.waited > y.waited
}
