package liveness

import (
	"weft/transport/task"
	"weft/transport/verbs"
)

// Hear has fatal events of the cards end what they concern, until stop, and
// Config.Heard told of all. Events of ports are for those who choose paths.
func (w *Watcher) Hear(p *verbs.Provider) (stop func()) {
	if p == nil {
		return func() {}
	}
	var stops []func()
	heard := map[string]bool{}
	for _, d := range p.Devices() {
		if heard[d.NIC] {
			continue
		}
		heard[d.NIC] = true
		stops = append(stops, d.Subscribe(func(e verbs.Event) {
			w.cfg.Heard(&e)
			if e.Err != nil {
				go w.Fatal(e) // a subscriber must not block
			}
		}))
	}
	return func() {
		for _, f := range stops {
			f()
		}
	}
}

// Fatal ends what a fatal event concerns.
func (w *Watcher) Fatal(e verbs.Event) {
	defer task.Rescue(w.cfg.Log, "asynchronous event", task.Nobody)
	w.mu.Lock()
	var lost []failing
	for v, x := range w.subjects {
		switch {
		case !v.Struck(&e):
		case x.comm != nil:
			v.Spoil() // also of a comm that is closed here and waits for its peer
			lost = append(lost, failing{v, x.comm})
		default:
			x.doomed = e.Err
		}
	}
	for _, p := range w.probes {
		if p.concerned(&e) {
			p.giveUp(e.Err)
		}
	}
	w.mu.Unlock()
	failAll(lost, e.Err)
}

// concerned reports whether it means the probe's queue pair.
func (p *probe) concerned(e *verbs.Event) bool {
	switch {
	case p.end == nil:
		return false
	case e.QP != nil:
		return e.QP == p.end.qp
	case e.CQ != nil:
		return e.CQ == p.end.cq
	}
	return p.pair.Local.NIC == e.NIC
}
