package lanes

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// target is what one side of a comm has for the other to write into.
type target struct {
	shared uint64   // address of the range
	keys   []uint32 // its keys, by slot
}

// PairError is why one pair of ports, of those that a comm was to run over,
// does not work.
type PairError struct {
	Pair *route.Pair
	Err  error
}

func (e *PairError) Error() string { return e.Err.Error() }

func (e *PairError) Unwrap() error { return e.Err }

// target describes this side.
func (v *Carrier) target() target { return target{uint64(v.slab.Addr), ringKeys(v.ports)} }

// ringKeys are the peer's keys on some ports, by slot.
func ringKeys(ports []*Port) (keys []uint32) {
	for _, p := range ports {
		for len(keys) <= p.Slot {
			keys = append(keys, 0)
		}
		keys[p.Slot] = p.ring.RKey
	}
	return keys
}

// describeLanes describes this side's ends of lanes. The listening side, answering,
// asks for what is left of the vendor's enhancements when they are connected, the
// other one before; lanes of an earlier comm have them.
func describeLanes(lanes []*Lane, answering bool) error {
	for _, l := range lanes {
		end, ece := l.QP.Local(l.pair.GID), l.mine.ECE
		l.mine = wire.QPEnd{Device: l.pair.LocalIndex, Peer: l.pair.PeerIndex, Slot: uint8(l.port.Slot),
			QPN: end.QPN, PSN: end.PSN, LID: end.LID, MTU: l.pair.CapMTU(end.MTU), GID: route.ToWire(end.GID),
			Scratch: wire.Scratch{Addr: mr.ScratchAddr(), Key: l.port.proof.RKey}}
		switch {
		case l.Again:
			l.mine.ECE = ece
		case !answering || l.theirs.ECE != (wire.ECE{}):
			ece, _, err := l.QP.QueryECE()
			if err != nil {
				return &PairError{l.pair, err}
			}
			l.mine.ECE = wire.ECE(ece)
		}
	}
	return nil
}

// endsOf are this side's ends of lanes that have been described.
func endsOf(lanes []*Lane) (all []wire.QPEnd) {
	for _, l := range lanes {
		all = append(all, l.mine)
	}
	return all
}

// connect gives the lanes to the executor, which fills their receive queues,
// and connects them with the peer's. Those of an earlier comm are settled first.
func (v *Carrier) connect(ctx context.Context, peer target, theirs []wire.QPEnd, sl, tc uint8) error {
	if len(theirs) != len(v.lanes) || len(peer.keys) == 0 || peer.shared == 0 {
		return report.Errorf(report.Peer, "connect", "the peer offers %d lanes and %d keys at %#x for %d lanes",
			len(theirs), len(peer.keys), peer.shared, len(v.lanes)).On(v.Device.Name).With(v.Peer).Try("both hosts must run the same weft")
	}
	for i, l := range v.lanes {
		if l.Again && l.theirs.QPN != theirs[i].QPN {
			return fmt.Errorf("lane %d of %d: the peer means another queue pair", i, len(v.lanes))
		}
		l.theirs = theirs[i]
	}
	if err := v.settle(ctx); err != nil {
		return err
	}
	v.peerTarget, v.sl, v.tc, v.ece = peer, sl, tc, theirs[0].ECE
	if err := fastpath.AttachVerbs(v.fp, v.plan(v.ports, v.lanes, peer.keys)); err != nil {
		return v.notAttached(v.lanes, err)
	}
	for i, l := range v.lanes {
		if l.Again {
			continue
		}
		if err := v.connectLane(ctx, l); err != nil {
			return &PairError{l.pair, fmt.Errorf("lane %d of %d: %w", i, len(v.PairAt), err)}
		}
	}
	return nil
}

// notAttached is why the executor could not take lanes.
func (v *Carrier) notAttached(lanes []*Lane, err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return qp.PostFailed("ibv_post_recv", lanes[0].port.Device.Name, errno, nil).With(v.Peer)
	}
	return report.Errorf(report.Host, "connect", "%w", err).On(v.Device.Name).With(v.Peer)
}

// connectLane connects a lane with the peer's end.
func (v *Carrier) connectLane(ctx context.Context, l *Lane) error {
	t := &l.theirs
	path := qp.Path{GID: l.pair.GID, SL: v.sl, TC: v.tc,
		Peer: qp.End{QPN: t.QPN, PSN: t.PSN, LID: t.LID, MTU: l.pair.CapMTU(t.MTU), GID: route.FromWire(t.GID)}}
	if t.ECE != (wire.ECE{}) {
		path.ECE, path.Offered = (*ibv.ECE)(&t.ECE), v.Kind == fastpath.Recv
	}
	return l.QP.Connect(ctx, path)
}

// plan is how the executor uses lanes; keys are the peer's, by its slot.
func (v *Carrier) plan(ports []*Port, lanes []*Lane, keys []uint32) *fastpath.VerbsPlan {
	t := v.Tuning
	p := &fastpath.VerbsPlan{Width: (t.Width*len(lanes) + len(v.PairAt) - 1) / len(v.PairAt), Measured: v.measures(), StripeMin: t.StripeMin, ARThreshold: t.AdaptiveAbove, Peer: v.peerTarget.shared, PeerKeys: keys, FlushAlways: v.always}
	for _, port := range ports {
		for len(p.Keys) <= port.Slot {
			p.Keys = append(p.Keys, fastpath.Keys{})
		}
		p.Keys[port.Slot] = fastpath.Keys{LKey: port.ring.LKey, RKey: port.ring.RKey}
	}
	p.Flush = make([]fastpath.VerbsFlush, len(p.Keys))
	for _, port := range ports {
		p.Flush[port.Slot] = v.flushPlan(port)
	}
	var over []*route.Pair
	for _, l := range lanes {
		over = append(over, l.pair)
	}
	weights := route.Weights(v.begin(over))
	for i, l := range lanes {
		to := fastpath.VerbsLane{QP: l.QP.Pointer(), CQ: l.port.CQ.Pointer(), Device: l.port.Slot, PeerDevice: int(l.theirs.Slot),
			SendDepth: l.QP.SendDepth, Inline: l.QP.Inline, MaxMessage: l.port.Device.MaxMessage(), Weight: weights[i]}
		if v.Kind == fastpath.Recv {
			to.RecvDepth, to.RecvPosted = l.QP.RecvDepth, l.Posted
		}
		p.Lanes = append(p.Lanes, to)
	}
	return p
}
