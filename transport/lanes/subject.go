package lanes

import (
	"slices"

	"weft/transport/fastpath"
	"weft/transport/liveness"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/event"
)

// What the watcher asks and tells of a carrier: it is a liveness.Subject.

// Routes are the pairs of ports that the executor's lanes run over, in its order.
func (v *Carrier) Routes() []*route.Pair { return *v.routes.Load() }

// Class is how the sending side marks its packets.
func (v *Carrier) Class() liveness.Class { return v.class }

// Progress is how far the lanes have come. A receiver's CTS complete in passing:
// while no receive waits, one that has not completed is no sign of a failure.
func (v *Carrier) Progress(into []fastpath.LaneState) (lanes []fastpath.LaneState, waits bool) {
	waits = v.Kind == fastpath.Send || v.fp.Snapshot().Incomplete > 0
	return v.fp.LaneStates(into), waits
}

// Tick makes what comes later and shares the messages among the lanes anew.
func (v *Carrier) Tick(s *session.Session) {
	if s.Active && v.ripe() {
		v.growLater(s)
	}
	v.warmLoops(s)
	v.stripe()
}

// Struck reports whether a fatal event means v, and ends what it is making if the
// event means that.
func (v *Carrier) Struck(e *event.Event) bool {
	if v.concerned(e) {
		return true
	}
	v.hit(e)
	return v.concerned(e) // lanes that have joined just before that
}

// Spoil keeps v's queue pairs from serving again.
func (v *Carrier) Spoil() { v.fenced.Store(true) }

// concerned reports whether a fatal event means what the executor has of v.
func (v *Carrier) concerned(e *event.Event) bool {
	if e.QP != nil || e.CQ != nil {
		return v.owns(e.QP, e.CQ)
	}
	return slices.ContainsFunc(*v.routes.Load(), func(p *route.Pair) bool { return p.Local.NIC == e.NIC })
}

// hit ends a growth when a fatal event means something that it is making.
func (v *Carrier) hit(e *event.Event) {
	means := e.QP != nil && e.QP.Cookie == v.cookie
	for i := range v.Pairs {
		means = means || e.QP == nil && e.CQ == nil && v.Pairs[i].Local.NIC == e.NIC
	}
	if means {
		v.stopGrowth(e.Err)
	}
}

// stripe is the watcher's turn for v, which carries a comm.
func (v *Carrier) stripe() {
	if !v.measures() {
		return
	}
	if w := v.stripes.Turn(v.fp.LaneRates(nil), route.Speeds(*v.routes.Load())); w != nil {
		_ = v.fp.SetWeights(w) // it fails only where further lanes have come meanwhile: then the next turn does it
	}
}
