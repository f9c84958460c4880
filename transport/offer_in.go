package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// last serves a comm's first stream from lanes to go: offers in between are
// answered, each in place of the one before. The carrier of an offer that go
// takes up is in's from then on.
func (h *handshake) last(in *inbound) error {
	var v *verbsCarrier
	discard := func() {
		if v != nil {
			v.discard()
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
				if err := h.core.mayUseTCP(h.listener.dev, in.peer, "the peer says so"); err != nil {
					in.fail(err)
					return err
				}
			} else if v == nil {
				return fmt.Errorf("go takes up an offer that was not accepted: %w", wire.ErrMalformed)
			}
			given := v
			v = nil
			in.goes(m, h.conn, given)
			return nil
		}
		discard()
		m, err := wire.ParseOffer(frame)
		if err != nil {
			return err
		}
		if offers == routesTried {
			return fmt.Errorf("more than %d offers: %w", routesTried, wire.ErrMalformed)
		}
		in.patience()
		h.conn.SetDeadline(time.Now().Add(h.core.timeout))
		var answer wire.Answer
		var mine ends
		if v, mine, err = h.accepts(in, &m); err != nil {
			answer.Reason = err.Error()
			if final := (*finalError)(nil); errors.As(err, &final) {
				answer.Flags = wire.FlagFinal
				_, _ = h.conn.Write(answer.Append(nil))
				in.fail(withPeer(final.error, in.peer))
				return final
			}
			if e := (*pairError)(nil); errors.As(err, &e) {
				answer.Lane = uint8(slices.IndexFunc(m.Lanes, func(l wire.QPEnd) bool { return l.Peer == e.pair.localIndex && l.Device == e.pair.peerIndex }))
			}
			h.listener.ctx.opts.Log.Info(rdma.Net, "%s <- %s: RDMA refused: %v", h.listener.dev.Name, in.peer, err)
		} else {
			answer.Shared, answer.Keys, answer.Lanes = mine.shared, mine.keys, mine.lanes
		}
		if _, err := h.conn.Write(answer.Append(nil)); err != nil {
			return fmt.Errorf("answering an offer: %w", err)
		}
	}
}

// accepts makes and connects this side's lanes of an offer, and describes them.
func (h *handshake) accepts(in *inbound, m *wire.Offer) (*verbsCarrier, ends, error) {
	pairs, at, err := h.pairs(m.Lanes)
	if err != nil {
		return nil, ends{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.core.offerLimit())
	defer cancel()
	if err := h.core.agreeOnOrder(pairs, m.Flags&wire.FlagAnyOrder != 0); err != nil {
		return nil, ends{}, err
	}
	at = alternate(at, int(m.Further))
	v, err := openVerbs(h.listener.ctx, h.listener.dev, fastpath.Recv, in.peer, pairs, at, int(m.Further))
	if err != nil {
		return nil, ends{}, err
	}
	v.class = class{m.SL, m.TC}
	var mine ends
	err = v.connect(ctx, ends{m.Shared, m.Keys, m.Lanes}, m.SL, h.core.cfg.Verbs.ReceiverTC(m.TC))
	if err == nil {
		mine, err = v.ends()
	}
	if err != nil {
		v.discard()
		return nil, ends{}, err
	}
	v.ece = mine.lanes[0].ECE
	return v, mine, nil
}

// pairs finds the ports that an offer's lanes run between, and which each lane uses.
func (h *handshake) pairs(lanes []wire.QPEnd) (pairs []verbsPair, at []int, err error) {
	for i := range lanes {
		e := &lanes[i]
		n := slices.IndexFunc(pairs, func(p verbsPair) bool { return p.localIndex == e.Peer && p.peerIndex == e.Device })
		if n < 0 {
			p, err := h.pair(e)
			if err != nil {
				return nil, nil, &pairError{&verbsPair{localIndex: e.Peer, peerIndex: e.Device}, err}
			}
			n, pairs = len(pairs), append(pairs, p)
		}
		if theirs := verbsGID(e.GID); theirs.Addr != pairs[n].peerGID.Addr || theirs.Type != pairs[n].peerGID.Type {
			return nil, nil, fmt.Errorf("lane %d has GID %v, another one of the same ports has %v: %w", i, theirs.Addr, pairs[n].peerGID.Addr, wire.ErrMalformed)
		}
		at = append(at, n)
	}
	return pairs, at, nil
}

// alternate gives as many lanes more the pairs of the first ones, in turn.
func alternate(at []int, more int) []int {
	for i := range more {
		at = append(at, at[i])
	}
	return at
}

// pair judges the ports of one lane.
func (h *handshake) pair(e *wire.QPEnd) (verbsPair, error) {
	local := h.core.port(e.Peer)
	if local == nil {
		return verbsPair{}, fmt.Errorf("this host has no RDMA device %d", e.Peer)
	}
	if why := local.Down(); why != "" {
		return verbsPair{}, fmt.Errorf("%s: %s", local.Name, why)
	}
	p := verbsPair{local: local, localIndex: e.Peer, peerIndex: e.Device, peerGID: verbsGID(e.GID)}
	p.gid, _, p.reach = verbs.PairGIDs(local.GIDs(), []verbs.GID{p.peerGID})
	if p.reach == verbs.Unreachable {
		return verbsPair{}, fmt.Errorf("%s has no GID that reaches %v", local.Name, p.peerGID)
	}
	return p, nil
}
