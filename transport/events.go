package transport

import (
	"slices"

	"weft/transport/route"
	"weft/transport/task"
	"weft/transport/verbs"
)

// hear has fatal events of the cards end what they concern, until stop, and the
// pool hear of all. Events of ports are for those who choose paths.
func (w *watcher) hear(p *verbs.Provider) (stop func()) {
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
			w.core.pool.heard(&e)
			if e.Err != nil {
				go w.fatal(e) // a subscriber must not block
			}
		}))
	}
	return func() {
		for _, f := range stops {
			f()
		}
	}
}

// fatal ends what a fatal event concerns.
func (w *watcher) fatal(e verbs.Event) {
	defer task.Rescue(w.core.cfg.Log, "asynchronous event", task.Nobody)
	w.mu.Lock()
	var lost []*verbsCarrier
	for v, x := range w.carriers {
		means := v.concerned(&e)
		if !means {
			v.more.hit(v, &e)
			means = v.concerned(&e) // lanes that have joined just before that
		}
		switch {
		case !means:
		case x.comm != nil:
			v.fenced.Store(true) // also of a comm that is closed here and waits for its peer: the pool does not get it
			lost = append(lost, v)
		default:
			x.doomed = e.Err
		}
	}
	for _, p := range w.probes {
		if p.concerned(&e) {
			p.over(e.Err)
		}
	}
	w.mu.Unlock()
	end(lost, e.Err)
}

// concerned reports whether a fatal event means v.
func (v *verbsCarrier) concerned(e *verbs.Event) bool {
	if e.QP != nil || e.CQ != nil {
		return v.owns(e.QP, e.CQ)
	}
	return slices.ContainsFunc(*v.routes.Load(), func(p *route.Pair) bool { return p.Local.NIC == e.NIC })
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
