package lanes

import (
	"errors"
	"slices"
	"time"

	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/event"
	"weft/transport/wire"
)

// queues are the queue pairs of a comm, or of one that is over, and the ports that they run over.
type queues struct {
	lanes []*lane   // those that the executor has, in its order
	ports []*onPort // local, distinct; a kit's are without ring and slot, which a comm has
	ece   wire.ECE  // what both ends of lane 0 agreed on
}

// SettleLimit bounds the wait for queue pairs to prove that they still work;
// new ones take about as long.
const SettleLimit = 250 * time.Millisecond

// Kit is what a connection leaves to a later one: its queue pairs, which stay
// connected, with their completion queues. Both sides know it by the connection
// that it was made for.
type Kit struct {
	log     report.Logger
	session *session.Session
	comm    uint64         // of that connection, to the session
	device  *device.Device // as the host asked
	pairs   []route.Pair
	pairAt  []int // by lane, of all that the connection was to have
	queues
	sl, tc   uint8
	inline   int
	anyOrder bool
}

// Session is that of the connection that k was made for, Comm that connection.
func (k *Kit) Session() *session.Session { return k.session }

func (k *Kit) Comm() uint64 { return k.comm }

// Lanes is how many it has.
func (k *Kit) Lanes() int { return len(k.lanes) }

// Suits reports whether k's lanes can be the first ones of a connection for dev
// whose lane i is to run over pairs[at[i]]. If that is to have more lanes than k,
// k's connection must have been meant to have the same ones, so that there is room.
func (k *Kit) Suits(dev *device.Device, pairs []route.Pair, at []int, t route.Tuning, sl, tc uint8) bool {
	if k.device != dev || k.sl != sl || k.tc != tc || k.inline != t.Inline || k.anyOrder != t.AnyOrder || len(k.lanes) > len(at) {
		return false
	}
	for i, l := range k.lanes {
		if !l.pair.Same(&pairs[at[i]]) {
			return false
		}
	}
	return len(k.lanes) == len(at) || slices.EqualFunc(k.pairAt, at, func(was, is int) bool { return k.pairs[was].Same(&pairs[is]) })
}

// Concerned reports whether an event means k.
func (k *Kit) Concerned(e *event.Event) bool {
	return slices.ContainsFunc(k.ports, func(p *onPort) bool {
		switch {
		case e.QP != nil:
			return p.loop == e.QP || slices.ContainsFunc(k.lanes, func(l *lane) bool { return l.qp == e.QP })
		case e.CQ != nil:
			return p.cq == e.CQ
		case e.Device != nil:
			return p.device == e.Device
		}
		return p.device.NIC == e.NIC
	})
}

// Down reports whether one of k's ports is not to be used.
func (k *Kit) Down() bool {
	return slices.ContainsFunc(k.ports, func(p *onPort) bool { return p.device.Down() != "" })
}

// Destroy ends what nobody will use.
func (k *Kit) Destroy() {
	var err error
	for _, l := range k.lanes {
		err = errors.Join(err, l.qp.Close())
	}
	for _, p := range k.ports {
		if p.loop != nil {
			err = errors.Join(err, p.loop.Close())
		}
		err = errors.Join(err, p.cq.Close(), p.pd.Release())
	}
	if err != nil {
		report.Say(k.log, err)
	}
}
