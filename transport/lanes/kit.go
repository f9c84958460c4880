package lanes

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
	"weft/transport/verbs/event"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// SettleLimit bounds the wait for queue pairs to prove that they work still;
// new ones take about as long.
const SettleLimit = 250 * time.Millisecond

// Kit is what a connection leaves to a later one: its queue pairs, which stay
// connected, with their completion queues. Both sides know it by the connection
// that it was made for.
type Kit struct {
	log    report.Logger
	From   *session.Session
	Number uint64         // of that connection, to the session
	Device *device.Device // as the host asked
	pairs  []route.Pair
	pairAt []int // by lane, of all that the connection was to have
	Queues
	sl, tc   uint8
	inline   int
	anyOrder bool
}

// park leaves v's queue pairs to the pool if its comm, m to the session, was
// closed by both sides in good order, and is then over. False: it is to be
// destroyed.
func (v *Carrier) park(m *session.Member) bool {
	if !v.shared.Pool.Keeps() || m == nil || !m.ClosedWell() || v.fenced.Load() {
		return false
	}
	v.further.close(v) // no lane comes any more
	claimed := false
	v.stop.Do(func() { claimed = true }) // and nothing fences those that there are
	if !claimed || !v.atRest() {
		return false
	}
	v.end.Do(func() {
		v.shared.Watch.Remove(v) // which reads the slab
		k := v.Kit(m)
		if v.dismantle(k) != nil || v.Queues().Spoiled { // a fatal event came meanwhile
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
	case slices.ContainsFunc(v.ports, func(p *Port) bool { return (p.Flush != nil) != p.Looped }): // one is being made
		return false
	}
	return v.Kind == fastpath.Recv || !v.inFlight()
}

// Kit is what v leaves.
func (v *Carrier) Kit(m *session.Member) *Kit {
	k := &Kit{log: v.shared.Log, From: m.Session, Number: m.ID, Device: v.Device, pairs: v.Pairs, pairAt: v.PairAt, sl: v.sl, tc: v.tc,
		inline: v.Tuning.Inline, anyOrder: v.Tuning.AnyOrder, Queues: v.Queues()}
	for _, p := range k.Ports {
		p.Slot = -1
	}
	for i, l := range k.Lanes {
		l.mine, l.Again, l.Posted = wire.QPEnd{}, true, l.QP.RecvDepth-fastpath.ReceivesDue(v.fp, i)
	}
	return k
}

// Suits reports whether the first lanes of a connection can be k's: of one for dev
// whose lane i is to run over pairs[at[i]]. If it is to have more of them, k's
// connection was to have the same ones, for which there is room.
func (k *Kit) Suits(dev *device.Device, pairs []route.Pair, at []int, t route.Tuning, sl, tc uint8) bool {
	if k.Device != dev || k.sl != sl || k.tc != tc || k.inline != t.Inline || k.anyOrder != t.AnyOrder || len(k.Lanes) > len(at) {
		return false
	}
	for i, l := range k.Lanes {
		if !l.pair.Same(&pairs[at[i]]) {
			return false
		}
	}
	return len(k.Lanes) == len(at) || slices.EqualFunc(k.pairAt, at, func(was, is int) bool { return k.pairs[was].Same(&pairs[is]) })
}

// adopt gives v, which has nothing yet, what k has. When it fails k is gone.
func (v *Carrier) adopt(k *Kit) error {
	v.ports, v.lanes = k.Ports, k.Lanes
	for i, l := range v.lanes {
		l.pair, l.mine.ECE = &v.Pairs[v.PairAt[i]], k.ECE
	}
	for _, p := range v.ports {
		slot, err := v.Device.Ports.Enter(p.Device)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Device.Name, err)
		}
		p.Slot = slot
	}
	return nil
}

// settle proves anew the lanes that an earlier comm has had: nothing of that is
// left in their queues then.
func (v *Carrier) settle(ctx context.Context) error {
	for _, p := range v.ports {
		var on []qp.Proof
		for _, l := range v.lanes {
			if l.Again && l.port == p {
				on = append(on, l.proof())
			}
		}
		if len(on) == 0 {
			continue
		}
		if err := qp.Prove(ctx, SettleLimit, p.CQ, on...); err != nil {
			return err
		}
		if p.Flush != nil && p.Flush.State() != ibv.StateRTS {
			return report.Errorf(report.Host, "connect", "QP %d for flushes is in state %v", p.Flush.Number, p.Flush.State()).On(p.Device.Name)
		}
	}
	return nil
}

// Session is that of the connection that k was made for, Comm that connection.
func (k *Kit) Session() *session.Session { return k.From }

func (k *Kit) Comm() uint64 { return k.Number }

// Concerned reports whether an event means k.
func (k *Kit) Concerned(e *event.Event) bool {
	return slices.ContainsFunc(k.Ports, func(p *Port) bool {
		switch {
		case e.QP != nil:
			return p.Flush == e.QP || slices.ContainsFunc(k.Lanes, func(l *Lane) bool { return l.QP == e.QP })
		case e.CQ != nil:
			return p.CQ == e.CQ
		case e.Device != nil:
			return p.Device == e.Device
		}
		return p.Device.NIC == e.NIC
	})
}

// Down reports whether one of k's ports is not to be used.
func (k *Kit) Down() bool {
	return slices.ContainsFunc(k.Ports, func(p *Port) bool { return p.Device.Down() != "" })
}

// Destroy ends what nobody will use.
func (k *Kit) Destroy() {
	var err error
	for _, l := range k.Lanes {
		err = errors.Join(err, l.QP.Close())
	}
	for _, p := range k.Ports {
		if p.Flush != nil {
			err = errors.Join(err, p.Flush.Close())
		}
		err = errors.Join(err, p.CQ.Close(), p.pd.Release())
	}
	if err != nil {
		report.Say(k.log, err)
	}
}
