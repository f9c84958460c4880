package lanes

import (
	"context"
	"fmt"
	"slices"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/liveness"
	"weft/transport/route"
	"weft/transport/wire"
)

// What the two sides say of a connection's first lanes, on its first stream.

// Offer describes this side, the connecting one, in m, which has SL and TC already.
func (v *Carrier) Offer(m *wire.Offer) error {
	if err := describeLanes(v.lanes, false); err != nil {
		return err
	}
	mine := v.target()
	v.class = liveness.Class{SL: m.SL, TC: m.TC}
	m.Further, m.Shared, m.Keys, m.Lanes, m.Later = uint8(len(v.PairAt)-len(v.lanes)), mine.shared, mine.keys, endsOf(v.lanes), v.later()
	return nil
}

// Answered connects the lanes with those that the listening side has for the offer,
// and proves that bytes arrive.
func (v *Carrier) Answered(ctx context.Context, m *wire.Answer) error {
	if err := v.runsAs(m.Lanes, m.Later); err != nil {
		return err
	}
	if err := v.connect(ctx, target{m.Shared, m.Keys}, m.Lanes, v.class.SL, v.class.TC); err != nil {
		return err
	}
	return v.prove(ctx)
}

// Accept connects the lanes of this side, the listening one, with those of an
// offer; tc is the traffic class in which this side sends.
func (v *Carrier) Accept(ctx context.Context, m *wire.Offer, tc uint8) error {
	v.class = liveness.Class{SL: m.SL, TC: m.TC}
	if err := v.connect(ctx, target{m.Shared, m.Keys}, m.Lanes, m.SL, tc); err != nil {
		return err
	}
	if err := describeLanes(v.lanes, true); err != nil {
		return err
	}
	v.ece = v.lanes[0].mine.ECE
	return nil
}

// Answer describes this side in the answer to an offer that it has accepted.
func (v *Carrier) Answer(m *wire.Answer) {
	mine := v.target()
	m.Shared, m.Keys, m.Lanes, m.Later = mine.shared, mine.keys, endsOf(v.lanes), v.later()
}

// connect gives the lanes to the executor, which fills their receive queues,
// and connects them with the peer's. Those of an earlier comm are settled first.
func (v *Carrier) connect(ctx context.Context, peer target, theirs []wire.QPEnd, sl, tc uint8) error {
	if len(theirs) != len(v.lanes) || len(peer.keys) == 0 || peer.shared == 0 {
		return report.Errorf(report.Peer, "connect", "the peer offers %d lanes and %d keys at %#x for %d lanes",
			len(theirs), len(peer.keys), peer.shared, len(v.lanes)).On(v.Device.Name).With(v.Peer).Try("both hosts must run the same weft")
	}
	for i, l := range v.lanes {
		if l.again && l.theirs.QPN != theirs[i].QPN {
			return fmt.Errorf("lane %d of %d: the peer means another QP", i, len(v.lanes))
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
		if l.again {
			continue
		}
		if err := v.connectLane(ctx, l); err != nil {
			return &PairError{l.pair, fmt.Errorf("lane %d of %d: %w", i, len(v.PairAt), err)}
		}
	}
	return nil
}

// prove makes sure that every pair of ports carries packets, of full size in the
// direction of the data. What comes back is small: acknowledgements and CTS.
func (v *Carrier) prove(ctx context.Context) error {
	proven := map[*route.Pair]bool{}
	for _, l := range v.lanes {
		if proven[l.pair] || l.again { // which was settled
			continue
		}
		proven[l.pair] = true
		if err := l.prove(ctx); err != nil {
			return &PairError{l.pair, err}
		}
	}
	return v.shared.Watch.Doomed(v)
}

// runsAs checks that the peer's lanes, and those to come, run between the ports
// of the route.
func (v *Carrier) runsAs(lanes []wire.QPEnd, later []wire.PortPair) error {
	if want := len(v.later()); len(lanes) != len(v.lanes) || len(later) != want {
		return fmt.Errorf("%d lanes and %d pairs of ports for %d and %d: %w", len(lanes), len(later), len(v.lanes), want, wire.ErrMalformed)
	}
	for i, e := range lanes {
		if err := v.lanes[i].pair.Answered(&wire.PortPair{Device: e.Device, Peer: e.Peer, GID: e.GID}); err != nil {
			return fmt.Errorf("lane %d of %d: %w", i, len(lanes), err)
		}
	}
	for i := range later {
		if err := v.Pairs[len(v.Pairs)-len(later)+i].Answered(&later[i]); err != nil {
			return fmt.Errorf("pair %d of those to come: %w", i, err)
		}
	}
	return nil
}

// later are the pairs of ports that only further lanes run between: the last ones.
func (v *Carrier) later() (all []wire.PortPair) {
	for i := range v.Pairs {
		p := &v.Pairs[i]
		if !slices.ContainsFunc(v.lanes, func(l *lane) bool { return l.pair == p }) {
			all = append(all, wire.PortPair{Device: p.LocalIndex, Peer: p.PeerIndex, GID: route.ToWire(p.GID)})
		}
	}
	return all
}
