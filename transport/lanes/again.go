package lanes

import (
	"context"
	"fmt"
	"slices"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// park leaves v's queue pairs to the pool if its comm, m to the session, was
// closed by both sides in good order, and is then over. False: it is to be
// destroyed.
func (v *Carrier) park(m *session.Member) bool {
	if !v.shared.Pool.Keeps() || m == nil || !m.ClosedWell() || v.fenced.Load() {
		return false
	}
	v.endGrowth() // no lane comes any more
	claimed := false
	v.stop.Do(func() { claimed = true }) // and nothing fences those that there are
	if !claimed || !v.atRest() {
		return false
	}
	v.destroyed.Do(func() {
		v.shared.Watch.Remove(v) // which reads the slab
		k := v.kit(m)
		if v.dismantle(k) != nil || v.fenced.Load() { // a fatal event came meanwhile
			k.Destroy()
			return
		}
		v.shared.Pool.Put(k)
	})
	return true
}

// atRest reports whether nothing of v's closed comm is under way.
func (v *Carrier) atRest() bool {
	v.life.Lock()
	defer v.life.Unlock()
	switch {
	case v.stuck != nil, v.fp.Snapshot().Code != 0 && !v.forsaken.Load():
		return false
	case slices.ContainsFunc(v.ports, func(p *onPort) bool { return (p.loop != nil) != p.looped }): // one is being made
		return false
	}
	return v.Kind == fastpath.Recv || !v.inFlight()
}

// kit is what v leaves.
func (v *Carrier) kit(m *session.Member) *Kit {
	k := &Kit{log: v.shared.Log, session: m.Session, comm: m.ID, device: v.Device, pairs: v.Pairs, pairAt: v.PairAt, sl: v.sl, tc: v.tc,
		inline: v.Tuning.Inline, anyOrder: v.Tuning.AnyOrder, queues: v.have()}
	for _, p := range k.ports {
		p.slot = -1
	}
	for i, l := range k.lanes {
		l.mine, l.again, l.posted = wire.QPEnd{}, true, l.qp.RecvDepth-fastpath.ReceivesDue(v.fp, i)
	}
	return k
}

// adopt gives v, which has nothing yet, what k has. When it fails k is gone.
func (v *Carrier) adopt(k *Kit) error {
	v.ports, v.lanes = k.ports, k.lanes
	for i, l := range v.lanes {
		l.pair, l.mine.ECE = &v.Pairs[v.PairAt[i]], k.ece
	}
	for _, p := range v.ports {
		slot, err := v.Device.Ports.Enter(p.device)
		if err != nil {
			return fmt.Errorf("%s: %w", p.device.Name, err)
		}
		p.slot = slot
	}
	return nil
}

// settle proves anew the lanes that an earlier comm has had: nothing of that is
// left in their queues then.
func (v *Carrier) settle(ctx context.Context) error {
	for _, p := range v.ports {
		var on []qp.Proof
		for _, l := range v.lanes {
			if l.again && l.port == p {
				on = append(on, l.proof())
			}
		}
		if len(on) == 0 {
			continue
		}
		if err := qp.Prove(ctx, SettleLimit, p.cq, on...); err != nil {
			return err
		}
		if p.loop != nil && p.loop.State() != ibv.StateRTS {
			return report.Errorf(report.Host, "connect", "QP %d for flushes is in state %v", p.loop.Number, p.loop.State()).On(p.device.Name)
		}
	}
	return nil
}
