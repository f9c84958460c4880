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

// last serves a comm's first stream from lanes to go: offers in between are
// answered, each in place of the one before. The carrier of an offer that go
// takes up is in's from then on.
func (h *handshake) last(in *inbound) error {
	var v *lanes.Carrier
	discard := func() {
		if v != nil {
			v.Discard()
			v = nil
		}
	}
	defer func() { discard() }()
	for offers := 0; ; offers++ {
		frame, err := readFrame(h.conn)
		if err != nil {
			return &streamError{fmt.Errorf("waiting for go: %w", err)}
		}
		if wire.KindOf(frame) != wire.KindOffer {
			m, err := wire.ParseGo(frame)
			if err != nil {
				return err
			}
			if m.Flags&wire.FlagVerbs == 0 {
				discard()
				why := "the connecting side says: " + m.NoRDMA
				if err := h.core.mayUseTCP("accept", h.listener.dev, in.peer, why); err != nil {
					in.fail(err)
					return err
				}
				if h.listener.dev.Verbs != nil {
					tellTCP(h.listener.ctx.opts.Log, h.listener.dev, "<-", in.peer, why)
				}
			} else if v == nil {
				return fmt.Errorf("go takes up an offer that was not accepted: %w", wire.ErrMalformed)
			}
			var by *made
			if v != nil {
				by = &made{v, v.Discard}
			}
			v = nil
			in.goes(m, h.conn, by)
			return nil
		}
		discard()
		m, err := wire.ParseOffer(frame)
		if err != nil {
			return err
		}
		if offers == offersMade {
			return fmt.Errorf("more than %d offers: %w", offersMade, wire.ErrMalformed)
		}
		in.patience()
		h.conn.SetDeadline(time.Now().Add(h.core.timeout))
		var answer wire.Answer
		if v, err = h.accepts(in, &m); err != nil {
			answer.Reason = err.Error()
			if final := (*finalError)(nil); errors.As(err, &final) {
				answer.Flags = wire.FlagFinal
				_, _ = h.conn.Write(answer.Append(nil))
				in.fail(withPeer(final.error, in.peer))
				return final
			}
			if e := (*lanes.PairError)(nil); errors.As(err, &e) {
				answer.Pair = numberOf(&m, e.Pair)
			}
			what := "RDMA"
			if m.Flags&wire.FlagReuse != 0 {
				answer.Flags, what = wire.FlagReuse, "an earlier connection's queue pairs"
			}
			if h.says() {
				h.listener.ctx.opts.Log.Info(report.Net, "%s <- %s: %s refused: %v", h.listener.dev.Name, in.peer, what, err)
			}
		} else {
			v.Answer(&answer)
		}
		if _, err := h.conn.Write(answer.Append(nil)); err != nil {
			return fmt.Errorf("answering an offer: %w", err)
		}
	}
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
	pairs, _, _ := offered(m)
	return uint8(max(0, slices.IndexFunc(pairs, func(o wire.PortPair) bool { return o.Device == p.PeerIndex && o.Peer == p.LocalIndex })))
}

// offered lists the pairs of ports of an offer, those of its lanes first, and which
// of them each lane of the comm is to run over.
func offered(m *wire.Offer) (pairs []wire.PortPair, at []int, err error) {
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
	all, at, err := offered(m)
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
