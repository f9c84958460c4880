package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/verbs/gid"
	"weft/transport/wire"
)

// offered replies to an offer; where this side refuses it there is no carrier.
func (h *handshake) offered(in *inbound, frame []byte) (*made, error) {
	m, err := wire.ParseOffer(frame)
	if err != nil {
		return nil, err
	}
	in.patience()
	h.conn.SetDeadline(time.Now().Add(h.core.timeout))
	v, err := h.accepts(in, &m)
	var answer wire.Answer
	if err == nil {
		v.Answer(&answer)
	} else if answer, err = h.refuses(in, &m, err); err != nil {
		_, _ = h.conn.Write(answer.Append(nil))
		in.fail(withPeer(err, in.peer))
		return nil, err
	}
	if _, err := h.conn.Write(answer.Append(nil)); err != nil {
		if v != nil {
			v.Discard()
		}
		return nil, fmt.Errorf("answering an offer: %w", err)
	}
	if v == nil {
		return nil, nil
	}
	return &made{by: v, drop: v.Discard, apart: true}, nil
}

// refuses is the answer to an offer that why keeps from being taken; an error: the
// connection must not be made in another way either.
func (h *handshake) refuses(in *inbound, m *wire.Offer, why error) (wire.Answer, error) {
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
		answer.Flags, what = wire.FlagReuse, "an earlier connection's queue pairs"
	}
	if h.says() {
		h.listener.ctx.opts.Log.Info(report.Net, "%s <- %s: %s refused: %v", h.listener.dev.Name, in.peer, what, why)
	}
	return answer, nil
}

// accepts makes and connects this side's lanes of an offer, and describes them.
func (h *handshake) accepts(in *inbound, m *wire.Offer) (*lanes.Carrier, error) {
	pairs, at, err := h.pairs(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.core.lanes.OfferLimit())
	defer cancel()
	if err := h.core.agreeOnOrder(pairs, m.Flags&wire.FlagAnyOrder != 0); err != nil {
		return nil, err
	}
	var again *lanes.Kit
	if m.Flags&wire.FlagReuse != 0 {
		if again, err = h.again(ctx, m, pairs, at); err != nil {
			return nil, err
		}
	}
	v, err := h.core.lanes.Carrier(h.listener.ctx.lanes(h.listener.dev, fastpath.Recv, in.peer, pairs, at), len(m.Lanes), again)
	if err != nil {
		return nil, err
	}
	if err := v.Accept(ctx, m, h.core.cfg.Verbs.ReceiverTC(m.TC)); err != nil {
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
func (h *handshake) pairs(m *wire.Offer) (pairs []route.Pair, at []int, err error) {
	all, at, err := portPairs(m)
	for i := range all {
		p, err := h.pair(&all[i])
		if err != nil {
			return nil, nil, &lanes.PairError{Pair: &route.Pair{LocalIndex: all[i].Peer, PeerIndex: all[i].Device}, Err: err}
		}
		pairs = append(pairs, p)
	}
	return pairs, at, err
}

// pair judges two ports.
func (h *handshake) pair(e *wire.PortPair) (route.Pair, error) {
	local := h.core.devices.Port(e.Peer)
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
