package liveness

import (
	"weft/transport/task"
	"weft/transport/verbs/event"
)

// Fatal ends what a fatal event concerns. It does not block.
func (w *Watcher) Fatal(e event.Event) { go w.fatal(e) }

func (w *Watcher) fatal(e event.Event) {
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
func (p *probe) concerned(e *event.Event) bool {
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
