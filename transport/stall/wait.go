package stall

import (
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/wire"
)

// Subject is a comm that is watched.
type Subject interface {
	// Sends tells its direction.
	Sends() bool
	// Look is how far it has come.
	Look() fastpath.Look
	// Progress grows with what its carrier moves within a message.
	Progress() uint64
	// Sent is what the kernel has sent for it, in packets, and of these again; zeros: it
	// does not tell.
	Sent() (packets, again uint64)
	// Standing is the session of a comm that neither side has closed or given up;
	// nil: there is none.
	Standing() *session.Session
	// Broken reports whether it has failed, and its host has not closed it yet.
	Broken() bool
	// OutOfUse says why its own device cannot be used now; empty: it can.
	OutOfUse() string
	// Member is the comm to its session.
	Member() *session.Member
	// Devices are its own and the peer's.
	Devices() (own, peer string)
	// Log speaks to the host that has it.
	Log() report.Logger
}

// waitKey is what makes comms one wait.
type waitKey struct {
	process   wire.ProcessID
	sends     bool
	own, peer string // devices
}

// wait is what this process's comms wait for, of one other process. All is
// protected by Watcher.mu.
type wait struct {
	key     waitKey
	session *session.Session
	of      Subject // the comm that has waited longest
	comm    uint64  // its name on the session
	why     uint8
	look    fastpath.Look
	waited  time.Duration
	longest time.Duration // of all that it was
	count   int           // comms

	asked   time.Time // the question about comm that has no reply yet; zero: there is none
	replied time.Time
	reply   *wire.WaitReply // the last one about comm

	verdict verdict
	settled time.Time     // since when it has been of that kind
	next    time.Duration // a line is said when it has waited so long
	said    bool
	counted bool // as one that was told
}

// wayOf is how they call what leads from one to another.
func wayOf(from, to string) string { return "the way from " + from + " to " + to }

// nameOf is how lines call a process.
func nameOf(s *session.Session) string { return name(s.Peer.Host, s.Peer.PID) }

// gather finds the waits of all comms; w.mu is held. over are those that have come
// to an end because something moved, of those that were told.
func (w *Watcher) gather(all []Subject, after time.Duration) (over []*wait) {
	was := w.comms
	w.comms = make(map[Subject]*seen, len(all))
	moved, best := map[waitKey]bool{}, map[waitKey]Subject{}
	w.moving, w.broken = false, ""
	for _, x := range w.waits {
		x.count = 0
	}
	for _, c := range all {
		s, x := c.Standing(), was[c]
		if s == nil {
			w.breaks(c)
			continue
		}
		if x == nil { // its first look
			w.comms[c] = &seen{look: c.Look()}
			continue
		}
		w.comms[c] = x
		x.saw(c.Sends(), c.Look(), after, c.Progress)
		switch k := keyOf(c, s); {
		case x.waited > 0:
			w.add(k)
			if b := best[k]; b == nil || x.waited > w.comms[b].waited || x.waited == w.comms[b].waited && c == w.waits[k].of {
				best[k] = c
			}
		case x.state == moves:
			moved[k], w.moving = true, true
		}
	}
	for k, x := range w.waits {
		if c := best[k]; c != nil {
			x.shows(c, w.comms[c])
			continue
		}
		delete(w.waits, k)
		if x.said && moved[k] {
			over = append(over, x)
		}
	}
	return over
}

// breaks notes a comm that has failed: whoever waits for this process is to hear of it.
func (w *Watcher) breaks(c Subject) {
	if m := c.Member(); m != nil && c.Broken() {
		from, to := w.self, nameOf(m.Session)
		if !c.Sends() {
			from, to = to, from
		}
		w.broken = "the connection from " + from + " to " + to
	}
}

func keyOf(c Subject, s *session.Session) waitKey {
	own, peer := c.Devices()
	return waitKey{s.Peer.Process, c.Sends(), own, peer}
}

// add counts a comm.
func (w *Watcher) add(k waitKey) {
	if w.waits[k] == nil {
		w.waits[k] = &wait{key: k, next: w.least}
	}
	w.waits[k].count++
}

// shows makes c the comm of which is asked and told.
func (x *wait) shows(c Subject, by *seen) {
	if x.of != c || x.why != by.why {
		x.reply, x.asked, x.verdict = nil, time.Time{}, verdict{}
	}
	m := c.Member()
	x.of, x.session, x.comm, x.why, x.look, x.waited = c, m.Session, m.ID, by.why, by.look, by.waited
	x.longest = max(x.longest, by.waited)
}
