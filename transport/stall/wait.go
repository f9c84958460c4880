package stall

import (
	"time"

	"weft/transport/session"
	"weft/transport/wire"
)

// wait is what this process's comms wait for, of one other process.
type wait struct {
	path    path
	session *session.Session
	of      Subject // the comm that has waited longest
	comm    uint64  // its name on the session
	inquiry         // about that comm
	waited  time.Duration
	longest time.Duration // of all that it was
	count   int           // comms

	verdict verdict
	settled time.Time     // since when it has been of that kind
	next    time.Duration // a line is said when it has waited so long
	said    bool
	counted bool // as one that was told
}

// scene is what the last look has found.
type scene struct {
	self   string
	moving bool              // some comms moved between the last two looks
	broken string            // a connection that had failed at the last look; empty: none
	comms  map[Subject]*seen // those of the last look
	waits  map[path]*wait    // what they wait for
}

func newScene(self string) scene {
	return scene{self: self, comms: map[Subject]*seen{}, waits: map[path]*wait{}}
}

// gather finds the waits of all comms; a line is due of those that last for least.
// over are those that are over because something moved, of those that were told.
func (s *scene) gather(all []Subject, after, least time.Duration) (over []*wait) {
	was := s.comms
	s.comms = make(map[Subject]*seen, len(all))
	moved, best := map[path]bool{}, map[path]Subject{}
	s.moving, s.broken = false, ""
	for _, x := range s.waits {
		x.count = 0
	}
	for _, c := range all {
		at, x := c.Standing(), was[c]
		if at == nil {
			s.breaks(c)
			continue
		}
		if x == nil { // its first look
			s.comms[c] = &seen{look: c.Look()}
			continue
		}
		s.comms[c] = x
		x.saw(c.Sends(), c.Look(), after, c.Progress)
		switch p := pathOf(c, at); {
		case x.waited > 0:
			s.add(p, least)
			if b := best[p]; b == nil || x.waited > s.comms[b].waited || x.waited == s.comms[b].waited && c == s.waits[p].of {
				best[p] = c
			}
		case x.state == moves:
			moved[p], s.moving = true, true
		}
	}
	for p, x := range s.waits {
		if c := best[p]; c != nil {
			x.shows(c, s.comms[c], s.self)
			continue
		}
		delete(s.waits, p)
		if x.said && moved[p] {
			over = append(over, x)
		}
	}
	return over
}

// breaks notes a comm that has failed: whoever waits for this process is to hear of it.
func (s *scene) breaks(c Subject) {
	if m := c.Member(); m != nil && c.Broken() {
		from, to := s.self, nameOf(m.Session)
		if !c.Sends() {
			from, to = to, from
		}
		s.broken = "the connection from " + from + " to " + to
	}
}

// add counts a comm.
func (s *scene) add(p path, least time.Duration) {
	if s.waits[p] == nil {
		s.waits[p] = &wait{path: p, next: least}
	}
	s.waits[p].count++
}

// shows makes c the comm of which is asked and told.
func (x *wait) shows(c Subject, by *seen, self string) {
	m := c.Member()
	if x.of != c || x.why != by.why {
		x.verdict = verdict{}
		x.inquiry = inquiry{self: self, peer: nameOf(m.Session), older: m.Session.Peer.Flags&wire.FlagWaits == 0, sends: x.path.sends, why: by.why}
	}
	x.of, x.session, x.comm, x.look, x.waited = c, m.Session, m.ID, by.look, by.waited
	x.longest = max(x.longest, by.waited)
}

// find judges x.
func (x *wait) find(p pace, now time.Time) {
	v := x.conclude(p, now, func() (time.Duration, bool) { return x.session.Conn.Silence() })
	if v.kind != x.verdict.kind {
		x.settled = now
	}
	x.verdict = v
}

// ripe reports whether a line may be said: what has been seen once may have been
// on its way.
func (x *wait) ripe(p pace, now time.Time) bool {
	if x.waited < x.next || x.verdict.kind == unknown {
		return false
	}
	since := now.Sub(x.settled)
	switch v := &x.verdict; {
	case v.kind == silent, v.kind == mute:
		return true
	case v.kind == chained && v.root == wire.RootUnknown: // others may be about to find out
		return since >= p.patience+4*p.every
	}
	return since >= 2*p.every
}
