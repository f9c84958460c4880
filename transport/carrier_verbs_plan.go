package transport

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// ends is one side of a comm's lanes as the other must know it.
type ends struct {
	shared uint64   // address of the range that the other writes into
	keys   []uint32 // its keys, by slot
	lanes  []wire.QPEnd
}

// pairError is why one pair of ports, of those that a comm was to run over,
// does not work.
type pairError struct {
	pair *verbsPair
	error
}

func (e *pairError) Unwrap() error { return e.error }

// ends describes this side. The listening side asks for what is left of the
// vendor's enhancements when it is connected, the other one before.
func (v *verbsCarrier) ends() (ends, error) {
	e := ends{shared: uint64(v.shared.Addr)}
	for _, p := range v.ports {
		for len(e.keys) <= p.slot {
			e.keys = append(e.keys, 0)
		}
		e.keys[p.slot] = p.ring.RKey
	}
	var err error
	e.lanes, err = v.describeLanes(0, v.lanes[:v.first], v.theirs.lanes)
	return e, err
}

// describeLanes describes lanes from the one numbered from on; theirs are the
// peer's ends of them, if they are known.
func (v *verbsCarrier) describeLanes(from int, lanes []*verbs.QP, theirs []wire.QPEnd) (all []wire.QPEnd, err error) {
	for i, q := range lanes {
		pair := v.pairOf(from + i)
		l := q.Local(pair.gid)
		w := wire.QPEnd{Device: pair.localIndex, Peer: pair.peerIndex, Slot: uint8(v.portOf(from + i).slot),
			QPN: l.QPN, PSN: l.PSN, LID: l.LID, MTU: l.MTU, GID: portGID(l.GID)}
		if answering := theirs != nil; !answering || theirs[i].ECE != (wire.ECE{}) {
			ece, _, err := q.QueryECE()
			if err != nil {
				return nil, &pairError{pair, err}
			}
			w.ECE = wire.ECE(ece)
		}
		all = append(all, w)
	}
	return all, nil
}

// connect gives the lanes to the executor, which fills their receive queues,
// and connects them with the peer's.
func (v *verbsCarrier) connect(ctx context.Context, theirs ends, sl, tc uint8) error {
	if len(theirs.lanes) != v.first || len(theirs.keys) == 0 || theirs.shared == 0 {
		return rdma.Errorf(rdma.Peer, "connect", "the peer offers %d lanes and %d keys at %#x for %d lanes",
			len(theirs.lanes), len(theirs.keys), theirs.shared, v.first).On(v.dev.Name).With(v.peer).Try("both hosts must run the same weft")
	}
	v.theirs, v.sl, v.tc, v.ece = theirs, sl, tc, theirs.lanes[0].ECE
	if err := fastpath.AttachVerbs(v.fp, v.plan(v.lanes[:v.first], theirs.lanes)); err != nil {
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			return verbs.PostFailed("ibv_post_recv", v.pairOf(0).local.Name, errno, nil).With(v.peer)
		}
		return rdma.Errorf(rdma.Host, "connect", "%w", err).On(v.dev.Name).With(v.peer)
	}
	return v.connectLanes(ctx, 0, v.lanes[:v.first], theirs.lanes)
}

// connectLanes connects lanes from the one numbered from on with the peer's ends.
func (v *verbsCarrier) connectLanes(ctx context.Context, from int, lanes []*verbs.QP, theirs []wire.QPEnd) error {
	for i, q := range lanes {
		t, pair := &theirs[i], v.pairOf(from+i)
		path := verbs.Path{GID: pair.gid, SL: v.sl, TC: v.tc,
			Peer: verbs.End{QPN: t.QPN, PSN: t.PSN, LID: t.LID, MTU: t.MTU, GID: verbsGID(t.GID)}}
		if t.ECE != (wire.ECE{}) {
			path.ECE, path.Offered = (*verbs.ECE)(&t.ECE), v.kind == fastpath.Recv
		}
		if err := q.Connect(ctx, path); err != nil {
			return &pairError{pair, fmt.Errorf("lane %d of %d: %w", from+i, len(v.pairAt), err)}
		}
	}
	return nil
}

// plan is how the executor uses lanes, of which theirs are the peer's ends.
func (v *verbsCarrier) plan(lanes []*verbs.QP, theirs []wire.QPEnd) *fastpath.VerbsPlan {
	t := v.tuning
	p := &fastpath.VerbsPlan{Width: min(t.width, len(lanes)), Measured: v.measures(), StripeMin: t.stripeMin, ARThreshold: t.ar, Peer: v.theirs.shared, PeerKeys: v.theirs.keys, FlushAlways: v.always}
	for _, port := range v.ports {
		for len(p.Keys) <= port.slot {
			p.Keys = append(p.Keys, fastpath.Keys{})
		}
		p.Keys[port.slot] = fastpath.Keys{LKey: port.ring.LKey, RKey: port.ring.RKey}
	}
	p.Flush = make([]fastpath.VerbsFlush, len(p.Keys))
	for _, port := range v.ports {
		p.Flush[port.slot] = v.flushPlan(port)
	}
	weights := weights(v.speeds())
	for i, q := range lanes {
		port := v.portOf(i)
		l := fastpath.VerbsLane{QP: q.Pointer(), CQ: port.cq.Pointer(), Device: port.slot, PeerDevice: int(theirs[i].Slot),
			SendDepth: q.SendDepth, Inline: q.Inline, MaxMessage: port.dev.MaxMessage(), Weight: weights[i]}
		if v.kind == fastpath.Recv {
			l.RecvDepth = q.RecvDepth
		}
		p.Lanes = append(p.Lanes, l)
	}
	return p
}
