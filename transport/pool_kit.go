package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// settleLimit bounds the wait for queue pairs to prove that they work still;
// new ones take about as long.
const settleLimit = 250 * time.Millisecond

// kit is what a connection leaves to a later one: its queue pairs, which stay
// connected, with their completion queues. Both sides know it by the connection
// that it was made for.
type kit struct {
	log      report.Logger
	session  *session.Session
	comm     uint64         // to the session
	dev      *device.Device // as the host asked
	pairs    []route.Pair
	pairAt   []int        // by lane, of all that the connection was to have
	ports    []*verbsPort // without ring and slot, which a comm has
	lanes    []*verbsLane
	sl, tc   uint8
	inline   int
	anyOrder bool
	ece      wire.ECE
}

// park leaves v's queue pairs to the pool if its comm, m to the session, was
// closed by both sides in good order, and is then over. False: it is to be
// destroyed.
func (v *verbsCarrier) park(m *session.Member) bool {
	if !v.ctx.core.pool.Keeps() || m == nil || !m.ClosedWell() || v.fenced.Load() {
		return false
	}
	v.more.over(v) // no lane comes any more
	claimed := false
	v.stop.Do(func() { claimed = true }) // and nothing fences those that there are
	if !claimed || !v.atRest() {
		return false
	}
	v.end.Do(func() {
		v.ctx.core.watch.Remove(v) // which reads the slab
		k := v.kit(m)
		if v.dismantle(k) != nil || v.fenced.Load() { // a fatal event came meanwhile
			k.Destroy()
			return
		}
		v.ctx.core.pool.Put(k)
	})
	return true
}

// atRest reports whether nothing of v's closed comm is under way.
func (v *verbsCarrier) atRest() bool {
	v.life.Lock()
	defer v.life.Unlock()
	switch {
	case v.stuck != nil, v.fp.Snapshot().Code != 0 && !v.forsaken.Load():
		return false
	case slices.ContainsFunc(v.ports, func(p *verbsPort) bool { return (p.flush != nil) != p.looped }): // one is being made
		return false
	}
	return v.kind == fastpath.Recv || !v.inFlight()
}

// kit is what v leaves.
func (v *verbsCarrier) kit(m *session.Member) *kit {
	k := &kit{log: v.ctx.core.cfg.Log, session: m.Session, comm: m.ID, dev: v.dev, pairs: v.pairs, pairAt: v.pairAt, sl: v.sl, tc: v.tc,
		inline: v.tuning.Inline, anyOrder: v.tuning.AnyOrder, ece: v.ece}
	for _, p := range v.ports {
		k.ports = append(k.ports, &verbsPort{dev: p.dev, gid: p.gid, slot: -1, pd: p.pd, cq: p.cq, flush: p.flush, looped: p.looped})
	}
	for i, l := range v.lanes {
		k.lanes = append(k.lanes, &verbsLane{qp: l.qp, pair: l.pair, port: k.ports[slices.Index(v.ports, l.port)], theirs: l.theirs,
			again: true, posted: l.qp.RecvDepth - fastpath.ReceivesDue(v.fp, i)})
	}
	return k
}

// suits reports whether the first lanes of a connection can be k's: of one for dev
// whose lane i is to run over pairs[at[i]]. If it is to have more of them, k's
// connection was to have the same ones, for which there is room.
func (k *kit) suits(dev *device.Device, pairs []route.Pair, at []int, t route.Tuning, sl, tc uint8) bool {
	if k.dev != dev || k.sl != sl || k.tc != tc || k.inline != t.Inline || k.anyOrder != t.AnyOrder || len(k.lanes) > len(at) {
		return false
	}
	for i, l := range k.lanes {
		if !l.pair.Same(&pairs[at[i]]) {
			return false
		}
	}
	return len(k.lanes) == len(at) || slices.EqualFunc(k.pairAt, at, func(was, is int) bool { return k.pairs[was].Same(&pairs[is]) })
}

// adopt gives v, which has nothing yet, what k has. When it fails k is gone.
func (v *verbsCarrier) adopt(k *kit) error {
	v.ports, v.lanes = k.ports, k.lanes
	for i, l := range v.lanes {
		l.pair, l.mine.ECE = &v.pairs[v.pairAt[i]], k.ece
	}
	for _, p := range v.ports {
		slot, err := v.dev.Ports.Enter(p.dev)
		if err != nil {
			return fmt.Errorf("%s: %w", p.dev.Name, err)
		}
		p.slot = slot
	}
	return nil
}

// settle proves anew the lanes that an earlier comm has had: nothing of that is
// left in their queues then.
func (v *verbsCarrier) settle(ctx context.Context) error {
	for _, p := range v.ports {
		var on []verbs.Proof
		for _, l := range v.lanes {
			if l.again && l.port == p {
				on = append(on, l.proof())
			}
		}
		if len(on) == 0 {
			continue
		}
		if err := verbs.Prove(ctx, settleLimit, p.cq, on...); err != nil {
			return err
		}
		if p.flush != nil && p.flush.State() != verbs.StateRTS {
			return report.Errorf(report.Host, "connect", "QP %d for flushes is in state %v", p.flush.Number, p.flush.State()).On(p.dev.Name)
		}
	}
	return nil
}

// Session is that of the connection that k was made for, Comm that connection.
func (k *kit) Session() *session.Session { return k.session }

func (k *kit) Comm() uint64 { return k.comm }

// Concerned reports whether an event means k.
func (k *kit) Concerned(e *verbs.Event) bool {
	return slices.ContainsFunc(k.ports, func(p *verbsPort) bool {
		switch {
		case e.QP != nil:
			return p.flush == e.QP || slices.ContainsFunc(k.lanes, func(l *verbsLane) bool { return l.qp == e.QP })
		case e.CQ != nil:
			return p.cq == e.CQ
		case e.Device != nil:
			return p.dev == e.Device
		}
		return p.dev.NIC == e.NIC
	})
}

// Down reports whether one of k's ports is not to be used.
func (k *kit) Down() bool {
	return slices.ContainsFunc(k.ports, func(p *verbsPort) bool { return p.dev.Down() != "" })
}

// Destroy ends what nobody will use.
func (k *kit) Destroy() {
	var err error
	for _, l := range k.lanes {
		err = errors.Join(err, l.qp.Close())
	}
	for _, p := range k.ports {
		if p.flush != nil {
			err = errors.Join(err, p.flush.Close())
		}
		err = errors.Join(err, p.cq.Close(), p.pd.Release())
	}
	if err != nil {
		report.Say(k.log, err)
	}
}
