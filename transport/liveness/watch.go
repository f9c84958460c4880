// Package liveness looks after what RDMA carries: it finds paths that are silent
// and cards that have failed, and ends the comms that depend on them.
package liveness

import (
	"fmt"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/task"
	"weft/transport/verbs/qp"
)

// Watcher looks after what RDMA carries. A NIC takes half a minute to give up a
// peer that does not answer, and a comm whose peer should send never hears of
// it. So there is one goroutine per core, while there is anything to look after:
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
type Watcher struct {
	cfg      Config
	patience time.Duration // a lane that stands still for so long is suspect
	limit    time.Duration // for an acknowledgement
	every    time.Duration // a turn
	offer    time.Duration // for the peer's part of a probe
	stir     chan struct{} // the last subject has gone: a turn now

	mu       sync.Mutex
	running  bool                 // protected by mu, as all below
	subjects map[Subject]*watched // from their making to their end
	probes   map[key]*probe
	mute     map[key]bool // without a probe, as has been said
	number   uint32       // given to the last probe
	states   []fastpath.LaneState
}

// Config is what a watcher needs of its process.
type Config struct {
	Log        report.Logger
	Timeout    time.Duration        // T
	ReceiverTC func(tc uint8) uint8 // the traffic class that a receiver uses when its peer's is tc
	Vacant     func()               // the last subject has gone
}

// New is a watcher that looks after nothing yet.
func New(cfg Config) *Watcher {
	t := cfg.Timeout
	return &Watcher{cfg: cfg, patience: t / 5, limit: t / 10, every: t / 40, offer: t / 4, stir: make(chan struct{}, 1),
		subjects: map[Subject]*watched{}, probes: map[key]*probe{}, mute: map[key]bool{}}
}

// Add begins to look after v, whose queue pairs are made.
func (w *Watcher) Add(v Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subjects[v] = &watched{}
	if !w.running {
		w.running = true
		go w.run()
	}
}

// Remove ends that: v's queue pairs may go. With the last one the probes go,
// whatever T is.
func (w *Watcher) Remove(v Subject) {
	w.mu.Lock()
	delete(w.subjects, v)
	last := len(w.subjects) == 0
	w.mu.Unlock()
	if last {
		w.cfg.Vacant()
		select {
		case w.stir <- struct{}{}:
		default:
		}
	}
}

// Idle reports whether there is nothing to look after.
func (w *Watcher) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.subjects) == 0
}

// Carries says which comm v carries from now on, and fails if it cannot any more.
func (w *Watcher) Carries(v Subject, c carrier.Comm) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.subjects[v]
	x.comm = c
	return x.doomed
}

// Doomed is what ended v before it carried a comm.
func (w *Watcher) Doomed(v Subject) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.subjects[v].doomed
}

func (w *Watcher) run() {
	defer task.Rescue(w.cfg.Log, "liveness", func(error) {
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
func (w *Watcher) turn(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	type use struct {
		pair    *route.Pair
		suspect carrier.Comm
	}
	used := map[key]use{}
	for v, x := range w.subjects {
		s := x.session()
		if s == nil {
			continue
		}
		v.Tick(s)
		still, pairs := w.still(v, x, now), v.Routes()
		for lane := range x.lanes {
			p := pairOf(pairs, lane)
			k, u := keyOf(v, s, p), use{pair: p}
			if u.suspect = used[k].suspect; still>>lane&1 != 0 {
				u.suspect = x.comm
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
	w.running = len(w.subjects) > 0
	return w.running
}

// pairFor finds the pair of ports of a key by a comm that uses it; w.mu is held.
func (w *Watcher) pairFor(k key) *route.Pair {
	for v, x := range w.subjects {
		if x.session() != k.session {
			continue
		}
		for _, pair := range v.Routes() {
			if keyOf(v, k.session, pair) == k {
				return pair
			}
		}
	}
	return nil
}

// uses reports whether a comm that both sides have open still uses a pair of ports.
func (w *Watcher) uses(k key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pairFor(k) != nil
}

// still notes how far the lanes of v have come, and returns which of them have
// stood still for long, a bit for each.
func (w *Watcher) still(v Subject, x *watched, now time.Time) (lanes uint32) {
	var waits bool
	w.states, waits = v.Progress(w.states)
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
		case now.Sub(was.since) >= w.patience:
			lanes |= 1 << i
		}
	}
	return lanes
}

// ask has the probe used, unless it was a moment ago.
func (w *Watcher) ask(k key, p *probe, c carrier.Comm, now time.Time) {
	if p == nil || !p.works {
		if !w.mute[k] {
			w.mute[k] = true
			c.Log().Info(report.Net, "%v has made no progress for %v, and there is no probe to ask its path with: the NIC's own retries decide", c, w.patience)
		}
		return
	}
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(w.patience)
	p.ask()
}

// silent ends the suspects of a pair of ports that u says does not answer.
func (w *Watcher) silent(p *probe, u *qp.Unanswered) {
	w.mu.Lock()
	var lost []failing
	for v, x := range w.subjects {
		if x.session() != p.key.session {
			continue
		}
		still, pairs := w.still(v, x, time.Now()), v.Routes()
		for lane := range x.lanes {
			if still>>lane&1 != 0 && keyOf(v, p.key.session, pairOf(pairs, lane)) == p.key {
				lost = append(lost, failing{v, x.comm})
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
	why := report.Errorf(report.Network, "liveness", "%d connection%s made no progress for %v or more, and %s: %w", len(lost), report.Plural(len(lost)), w.patience, what, u.Err.Err).
		On(p.pair.Local.Name).With(p.key.session.Name)
	why.Remedy, why.Rules = u.Err.Remedy, u.Err.Rules
	failAll(lost, why)
}

// failing is a subject whose comm ends.
type failing struct {
	v    Subject
	comm carrier.Comm
}

// failAll fails comms; what has arrived on them is reported done all the same.
func failAll(lost []failing, why error) {
	for _, x := range lost {
		x.v.Drain()
		x.comm.Fail(why)
	}
}
