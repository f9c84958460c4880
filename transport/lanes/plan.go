package lanes

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// plan is how the executor uses lanes; keys are the peer's, by its slot.
func (v *Carrier) plan(ports []*onPort, lanes []*lane, keys []uint32) *fastpath.VerbsPlan {
	t := v.Tuning
	p := &fastpath.VerbsPlan{Width: (t.Width*len(lanes) + len(v.PairAt) - 1) / len(v.PairAt), Measured: v.measures(), StripeMin: t.StripeMin, ARThreshold: t.AdaptiveAbove, Peer: v.peerTarget.shared, PeerKeys: keys, FlushAlways: v.always}
	for _, port := range ports {
		for len(p.Keys) <= port.slot {
			p.Keys = append(p.Keys, fastpath.Keys{})
		}
		p.Keys[port.slot] = fastpath.Keys{LKey: port.ring.LKey, RKey: port.ring.RKey}
	}
	p.Flush = make([]fastpath.VerbsFlush, len(p.Keys))
	for _, port := range ports {
		p.Flush[port.slot] = v.flushPlan(port)
	}
	var pairs []*route.Pair
	for _, l := range lanes {
		pairs = append(pairs, l.pair)
	}
	weights := route.Weights(v.firstWeights(pairs))
	for i, l := range lanes {
		to := fastpath.VerbsLane{QP: l.qp.Pointer(), CQ: l.port.cq.Pointer(), Device: l.port.slot, PeerDevice: int(l.theirs.Slot),
			SendDepth: l.qp.SendDepth, Inline: l.qp.Inline, MaxMessage: l.port.device.MaxMessage(), Weight: weights[i]}
		if v.Kind == fastpath.Recv {
			to.RecvDepth, to.RecvPosted = l.qp.RecvDepth, l.posted
		}
		p.Lanes = append(p.Lanes, to)
	}
	return p
}

// firstWeights are those of lanes that run over these pairs, before anything is measured.
func (v *Carrier) firstWeights(pairs []*route.Pair) []float64 {
	if v.shared.striping() == "even" {
		return slices.Repeat([]float64{1}, len(pairs))
	}
	return route.Speeds(pairs)
}

// measures reports whether v's lanes share by what they are seen to do.
func (v *Carrier) measures() bool {
	return v.Kind == fastpath.Send && v.Tuning.Width > 1 && v.shared.striping() == "measured"
}

// connectLane connects a lane with the peer's end.
func (v *Carrier) connectLane(ctx context.Context, l *lane) error {
	t := &l.theirs
	path := qp.Path{GID: l.pair.GID, SL: v.sl, TC: v.tc,
		Peer: qp.End{QPN: t.QPN, PSN: t.PSN, LID: t.LID, MTU: l.pair.CapMTU(t.MTU), GID: route.FromWire(t.GID)}}
	if t.ECE != (wire.ECE{}) {
		path.ECE, path.Offered = (*ibv.ECE)(&t.ECE), v.Kind == fastpath.Recv
	}
	return l.qp.Connect(ctx, path)
}

// notAttached is why the executor could not take lanes.
func (v *Carrier) notAttached(lanes []*lane, err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return qp.PostFailed("ibv_post_recv", lanes[0].port.device.Name, errno, nil).With(v.Peer)
	}
	return report.Errorf(report.Host, "connect", "%w", err).On(v.Device.Name).With(v.Peer)
}
