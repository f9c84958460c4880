package lanes

import "weft/transport/wire"

// Queues are the queue pairs of a comm, and the ports that they run over: what its
// line in the log tells of, and what its kit has. Carrier.Queues is the one way to
// look into a carrier from outside.
type Queues struct {
	Lanes   []*Lane  // those that the executor has, in its order
	Ports   []*Port  // local, distinct; a kit's are without ring and slot, which a comm has
	ECE     wire.ECE // what both ends of lane 0 agreed on
	Spoiled bool     // they cannot serve again
}

// Queues are those of v at the moment.
func (v *Carrier) Queues() Queues {
	v.life.Lock()
	defer v.life.Unlock()
	q := Queues{ECE: v.ece, Spoiled: v.fenced.Load()}
	for _, p := range v.ports {
		q.Ports = append(q.Ports, &Port{Device: p.Device, Slot: p.Slot, gid: p.gid, pd: p.pd, CQ: p.CQ, Flush: p.Flush, Looped: p.Looped})
	}
	for _, l := range v.lanes {
		copied := *l
		copied.port = portOn(q.Ports, l.port.Device)
		q.Lanes = append(q.Lanes, &copied)
	}
	return q
}
