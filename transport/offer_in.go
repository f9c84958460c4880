package transport

import (
	"context"
	"fmt"
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
		if offers == pairsTried {
			return fmt.Errorf("more than %d offers: %w", pairsTried, wire.ErrMalformed)
		}
		in.patience()
		h.conn.SetDeadline(time.Now().Add(h.core.timeout))
		var answer wire.Answer
		if v, err = h.accepts(in, &m); err != nil {
			answer.Reason = err.Error()
			h.listener.ctx.opts.Log.Info(rdma.Net, "%s <- %s: RDMA refused: %v", h.listener.dev.Name, in.peer, err)
		} else {
			answer.Shared, answer.Keys, answer.Lanes = v.ends()
		}
		if _, err := h.conn.Write(answer.Append(nil)); err != nil {
			return fmt.Errorf("answering an offer: %w", err)
		}
	}
}

// accepts makes and connects this side's lanes of an offer.
func (h *handshake) accepts(in *inbound, m *wire.Offer) (*verbsCarrier, error) {
	first := &m.Lanes[0]
	if int(first.Peer) >= len(h.core.cfg.Devices) || h.core.cfg.Devices[first.Peer].Verbs == nil {
		return nil, fmt.Errorf("this host has no RDMA device %d", first.Peer)
	}
	local := h.core.cfg.Devices[first.Peer].Verbs
	if why := local.Down(); why != "" {
		return nil, fmt.Errorf("%s: %s", local.Name, why)
	}
	pair := verbsPair{local: local, localIndex: first.Peer, peerIndex: first.Device, peerGID: verbsGID(first.GID)}
	pair.gid, _, pair.reach = verbs.PairGIDs(local.GIDs(), []verbs.GID{pair.peerGID})
	if pair.reach == verbs.Unreachable {
		return nil, fmt.Errorf("%s has no GID that reaches %v", local.Name, pair.peerGID)
	}
	if err := sameEnds(m.Lanes, len(m.Lanes), pair.peerIndex, pair.localIndex, pair.gid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.core.offerLimit())
	defer cancel()
	v, err := openVerbs(h.listener.ctx, h.listener.dev, fastpath.Recv, in.peer, pair, len(m.Lanes))
	if err != nil {
		return nil, err
	}
	if err := v.connect(ctx, m.Shared, m.Keys, m.Lanes, m.SL, h.core.cfg.Verbs.ReceiverTC(m.TC)); err != nil {
		v.discard()
		return nil, err
	}
	return v, nil
}
