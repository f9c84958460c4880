package offers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/verbs/gid"
	"weft/transport/wire"
)

// Lanes lists the ports of dev, or says why it has none.
func (w *Way) Lanes(dev *device.Device, m *wire.Lanes) {
	m.NoRDMA = w.whyNoPorts(dev)
	for _, i := range dev.Indices() {
		if v := w.Devices.Port(i); v != nil {
			m.Lanes = append(m.Lanes, wire.Lane{Kind: wire.LaneVerbs, Streams: 1, Device: i, MTU: uint32(v.PathMTU())})
		}
	}
}

// Reply replies to an offer; where this side refuses it there is no carrier.
func (w *Way) Reply(arrival *carrier.Arrival, frame []byte) (*carrier.Made, error) {
	a := &taker{w, arrival}
	m, err := wire.ParseOffer(frame)
	if err != nil {
		return nil, err
	}
	a.Patience()
	a.Conn.SetDeadline(time.Now().Add(w.Queues.Timeout))
	v, err := a.accepts(&m)
	var answer wire.Answer
	if err == nil {
		v.Answer(&answer)
	} else if answer, err = a.refuses(&m, err); err != nil {
		_, _ = a.Conn.Write(answer.Append(nil))
		a.Fail(withPeer(err, a.Peer))
		return nil, err
	}
	if _, err := a.Conn.Write(answer.Append(nil)); err != nil {
		if v != nil {
			v.Discard()
		}
		return nil, fmt.Errorf("answering an offer: %w", err)
	}
	if v == nil {
		return nil, nil
	}
	return made(v), nil
}

// refuses is the answer to an offer that why keeps from being taken; an error: the
// connection must not be made in another way either.
func (a *taker) refuses(m *wire.Offer, why error) (wire.Answer, error) {
	answer := wire.Answer{Reason: why.Error()}
	if final := (*finalError)(nil); errors.As(why, &final) {
		answer.Flags = wire.FlagFinal
		return answer, final
	}
	if e := (*lanes.PairError)(nil); errors.As(why, &e) {
		answer.Pair = numberOf(m, e.Pair)
	}
	what := "RDMA"
	if m.Flags&wire.FlagReuse != 0 {
		answer.Flags, what = wire.FlagReuse, "an earlier connection's QPs"
	}
	if a.Says() {
		a.Log.Info(report.Net, "%s <- %s: %s refused: %v", a.Device.Name, a.Peer, what, why)
	}
	return answer, nil
}

// accepts makes and connects this side's lanes of an offer, and describes them.
func (a *taker) accepts(m *wire.Offer) (*lanes.Carrier, error) {
	pairs, at, err := a.way.pairs(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.way.Queues.OfferLimit())
	defer cancel()
	if err := a.way.agreeOnOrder(pairs, m.Flags&wire.FlagAnyOrder != 0); err != nil {
		return nil, err
	}
	var again *lanes.Kit
	if m.Flags&wire.FlagReuse != 0 {
		if again, err = a.again(ctx, m, pairs, at); err != nil {
			return nil, err
		}
	}
	v, err := a.way.Queues.Carrier(a.way.options(&a.For, pairs, at), len(m.Lanes), again)
	if err != nil {
		return nil, err
	}
	if err := v.Accept(ctx, m, a.way.Provider.ReceiverTC(m.TC)); err != nil {
		v.Discard()
		return nil, err
	}
	return v, nil
}

// numberOf is how the answer to an offer names a pair of ports.
func numberOf(m *wire.Offer, p *route.Pair) uint8 {
	pairs, _, _ := portPairs(m)
	return uint8(max(0, slices.IndexFunc(pairs, func(o wire.PortPair) bool { return o.Device == p.PeerIndex && o.Peer == p.LocalIndex })))
}

// portPairs lists the pairs of ports of an offer, those of its lanes first, and which
// of them each lane of the comm is to run over.
func portPairs(m *wire.Offer) (pairs []wire.PortPair, at []int, err error) {
	find := func(device, peer uint16) int {
		return slices.IndexFunc(pairs, func(p wire.PortPair) bool { return p.Device == device && p.Peer == peer })
	}
	for i := range m.Lanes {
		e := &m.Lanes[i]
		n := find(e.Device, e.Peer)
		if n < 0 {
			n, pairs = len(pairs), append(pairs, wire.PortPair{Device: e.Device, Peer: e.Peer, GID: e.GID})
		}
		if e.GID != pairs[n].GID {
			return nil, nil, fmt.Errorf("lane %d has GID %v, another one of the same ports has %v: %w", i, e.GID.Addr, pairs[n].GID.Addr, wire.ErrMalformed)
		}
		at = append(at, n)
	}
	for _, p := range m.Later {
		if find(p.Device, p.Peer) >= 0 {
			return nil, nil, fmt.Errorf("device %d to %d twice: %w", p.Device, p.Peer, wire.ErrMalformed)
		}
		pairs = append(pairs, p)
	}
	all := lanes.Spread(len(pairs), len(m.Lanes)+int(m.Further))
	if m.Further > 0 && !slices.Equal(at, all[:len(at)]) {
		return nil, nil, fmt.Errorf("%d lanes to come after %d that take %d pairs of ports in another order: %w", m.Further, len(at), len(pairs), wire.ErrMalformed)
	}
	return pairs, append(at, all[len(at):]...), nil
}

// pairs judges the ports that an offer's lanes run between.
func (w *Way) pairs(m *wire.Offer) (pairs []route.Pair, at []int, err error) {
	all, at, err := portPairs(m)
	for i := range all {
		p, err := w.pair(&all[i])
		if err != nil {
			return nil, nil, &lanes.PairError{Pair: &route.Pair{LocalIndex: all[i].Peer, PeerIndex: all[i].Device}, Err: err}
		}
		pairs = append(pairs, p)
	}
	return pairs, at, err
}

// pair judges two ports.
func (w *Way) pair(e *wire.PortPair) (route.Pair, error) {
	local := w.Devices.Port(e.Peer)
	if local == nil {
		return route.Pair{}, fmt.Errorf("this host has no RDMA device %d", e.Peer)
	}
	if why := local.Down(); why != "" {
		return route.Pair{}, fmt.Errorf("%s: %s", local.Name, why)
	}
	p := route.Pair{Local: local, LocalIndex: e.Peer, PeerIndex: e.Device, PeerGID: route.FromWire(e.GID)}
	p.GID, _, p.Reach = gid.Pair(local.GIDs(), []gid.GID{p.PeerGID})
	if p.Reach == gid.Unreachable {
		return route.Pair{}, fmt.Errorf("%s has no GID that reaches %v", local.Name, p.PeerGID)
	}
	return p, nil
}
