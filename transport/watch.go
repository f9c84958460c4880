package transport

import (
	"fmt"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs"
)

// watcher looks after what RDMA carries. A NIC takes half a minute to give up a
// peer that does not answer, and a comm whose peer should send never hears of
// it. So there is one goroutine a core, while there is anything to look after:
//
//  1. Each turn reads how far the lanes have come. One that has requests
//     outstanding and stands still for a fifth of T makes its comm a suspect.
//  2. The suspect's pair of ports is asked, by the probe that all comms of the
//     session on that pair and in that class share. Its acknowledgement means
//     patience: the transfer is slow, or the peer's process is stopped.
//  3. None within a tenth of T, or none of packets of full size: all suspects of
//     the pair end, on both sides.
//
// Fatal events of a card end comms without a question.
type watcher struct {
	core  *Core
	late  time.Duration // a lane that stands still for so long is suspect
	limit time.Duration // for an acknowledgement
	every time.Duration // a turn
	stir  chan struct{} // the last carrier has gone: a turn now

	mu       sync.Mutex
	running  bool                       // protected by mu, as all below
	carriers map[*verbsCarrier]*watched // from their making to their end
	probes   map[pairKey]*probe
	mute     map[pairKey]bool // without a probe, as has been said
	number   uint32           // given to the last probe
	states   []fastpath.LaneState
}

// pairKey is a pair of ports as one session uses it in one class of traffic:
// indices here and there. Classes may fare differently on the same cable.
type pairKey struct {
	session     *session.Session
	local, peer uint16
	class       class
}

// class is what the sending side's packets ask of the network.
type class struct{ sl, tc uint8 }

// watched is a carrier as it was seen last. All is protected by watch.mu.
type watched struct {
	comm   carrier.Comm // nil: in its handshake
	doomed error        // what ended it there
	lanes  []progress
}

type progress struct {
	completed uint32
	since     time.Time // it stands there with requests outstanding; zero: none are
}

func newWatcher(c *Core) *watcher {
	return &watcher{core: c, late: c.timeout / 5, limit: c.timeout / 10, every: c.timeout / 40, stir: make(chan struct{}, 1),
		carriers: map[*verbsCarrier]*watched{}, probes: map[pairKey]*probe{}, mute: map[pairKey]bool{}}
}

// add begins to look after v, whose queue pairs are made.
func (w *watcher) add(v *verbsCarrier) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.carriers[v] = &watched{}
	if !w.running {
		w.running = true
		go w.run()
	}
}

// remove ends that: v's queue pairs may go. With the last one the pool goes, and the
// probes, whatever T is.
func (w *watcher) remove(v *verbsCarrier) {
	w.mu.Lock()
	delete(w.carriers, v)
	last := len(w.carriers) == 0
	w.mu.Unlock()
	if last {
		w.core.pool.empty()
		select {
		case w.stir <- struct{}{}:
		default:
		}
	}
}

// idle reports whether there is nothing to look after.
func (w *watcher) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.carriers) == 0
}

// carries says which comm v carries from now on, and fails if it cannot any more.
func (w *watcher) carries(v *verbsCarrier, c carrier.Comm) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.carriers[v]
	x.comm = c
	return x.doomed
}

// doomed is what ended v before it carried a comm.
func (w *watcher) doomed(v *verbsCarrier) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.carriers[v].doomed
}

func (w *watcher) run() {
	defer task.Rescue(w.core.cfg.Log, "liveness", func(error) {
		w.mu.Lock()
		w.running = false
		w.mu.Unlock()
	})
	for w.turn(time.Now()) {
		select {
		case <-time.After(w.every):
		case <-w.stir:
		}
	}
}

// turn looks at everything once; false when there is nothing left.
func (w *watcher) turn(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	type use struct {
		pair    *route.Pair
		suspect *verbsCarrier
	}
	used := map[pairKey]use{}
	for v, x := range w.carriers {
		s := x.session()
		if s == nil {
			continue
		}
		if s.Active && v.ripe() {
			v.growLater(s)
		}
		v.warmLoops(s)
		v.stripe()
		still := w.still(v, x, now)
		for lane := range x.lanes {
			k, u := v.keyOf(s, v.pairOf(lane)), use{pair: v.pairOf(lane)}
			if u.suspect = used[k].suspect; still>>lane&1 != 0 {
				u.suspect = v
			}
			used[k] = u
		}
	}
	for k, u := range used {
		p := w.probes[k]
		if p == nil && k.session.Active {
			p = w.lead(k, u.pair)
		}
		if u.suspect != nil {
			w.ask(k, p, u.suspect, now)
		}
	}
	for k, p := range w.probes {
		if _, ok := used[k]; !ok && k.session.Active { // the other side's ends when it is told so
			p.cancel(errUnused)
			delete(w.probes, k)
		}
	}
	for k := range w.mute {
		if _, ok := used[k]; !ok {
			delete(w.mute, k)
		}
	}
	w.running = len(w.carriers) > 0
	return w.running
}

// keyOf is the key of a pair of ports that v runs over.
func (v *verbsCarrier) keyOf(s *session.Session, p *route.Pair) pairKey {
	return pairKey{s, p.LocalIndex, p.PeerIndex, v.class}
}

// session is the one of a comm that neither side has closed or given up.
func (x *watched) session() *session.Session {
	if x.comm == nil {
		return nil
	}
	return x.comm.Standing()
}

// still notes how far the lanes of v have come, and answers which of them have
// stood still for long, a bit for each. A receiver's CTS complete by the way:
// while no receive waits, those that have not are no sign of anything.
func (w *watcher) still(v *verbsCarrier, x *watched, now time.Time) (lanes uint32) {
	fp := v.fp
	waits := v.kind == fastpath.Send || fp.Snapshot().Incomplete > 0
	w.states = fp.LaneStates(w.states)
	if len(x.lanes) != len(w.states) {
		x.lanes = make([]progress, len(w.states))
	}
	for i, is := range w.states {
		was := &x.lanes[i]
		switch {
		case is.Posted == is.Completed || !waits:
			*was = progress{}
		case was.since.IsZero() || is.Completed != was.completed:
			*was = progress{is.Completed, now}
		case now.Sub(was.since) >= w.late:
			lanes |= 1 << i
		}
	}
	return lanes
}

// ask has the probe used, unless it was a moment ago.
func (w *watcher) ask(k pairKey, p *probe, v *verbsCarrier, now time.Time) {
	if p == nil || !p.works {
		if !w.mute[k] {
			w.mute[k] = true
			v.ctx.opts.Log.Info(report.Net, "%v has made no progress for %v, and there is no probe to ask its path with: the NIC's own retries decide", v.comm, w.late)
		}
		return
	}
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(w.late)
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// silent ends the suspects of a pair of ports that u says does not answer.
func (w *watcher) silent(p *probe, u *verbs.Unanswered) {
	w.mu.Lock()
	var lost []*verbsCarrier
	for v, x := range w.carriers {
		if x.session() != p.key.session {
			continue
		}
		still := w.still(v, x, time.Now())
		for lane := range x.lanes {
			if still>>lane&1 != 0 && v.keyOf(p.key.session, v.pairOf(lane)) == p.key {
				lost = append(lost, v)
				break
			}
		}
	}
	w.mu.Unlock()
	if len(lost) == 0 {
		return
	}
	here, there := p.pair.GID.Addr.Unmap(), p.pair.PeerGID.Addr.Unmap()
	what := fmt.Sprintf("port %v does not answer %v", there, here)
	if u.Passes > 0 {
		what = fmt.Sprintf("large packets from port %v to %v are lost", here, there)
	}
	why := report.Errorf(report.Network, "liveness", "%d connection%s made no progress for %v or more, and %s: %w", len(lost), report.Plural(len(lost)), w.late, what, u.Err.Err).
		On(p.pair.Local.Name).With(p.key.session.Name)
	why.Remedy = u.Err.Remedy
	end(lost, why)
}

// end fails comms; what has arrived on them is reported done all the same.
func end(lost []*verbsCarrier, why error) {
	for _, v := range lost {
		v.Drain()
		v.comm.Fail(why)
	}
}
