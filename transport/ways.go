package transport

import (
	"context"
	"fmt"
	"slices"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// way is a provider's part of a connect, between the listening side's lanes and go.
type way struct {
	// connect makes the connecting side's carrier. Without one and an error it does
	// not serve this comm, and the next way is tried.
	connect func(*connector, context.Context, *dialogue) (*made, error)

	// asks is the kind of the frames by which connect has the listening side make its
	// carrier; serve replies to one. 0: connect asks for nothing.
	asks  wire.Kind
	limit int // of the frames of a connect
	serve func(*handshake, *inbound, []byte) (*made, error)

	// takes is the flag of the go that takes up what serve made last; the last way has none.
	takes uint16
	// allows is nil, or the listening side's error where go may not take this way.
	allows func(*handshake, *inbound, *wire.Go) error
}

// ways are how a comm may be carried, the best first. The last one always serves.
var ways = []way{
	{connect: (*connector).offer, asks: wire.KindOffer, limit: offersMade, serve: (*handshake).offered, takes: wire.FlagVerbs},
	{connect: (*connector).overStreams, allows: (*handshake).allowsStreams},
}

// dialogue is a connect whose sides have greeted one another.
type dialogue struct {
	session *session.Session
	won     *rendezvous.Won
	peer    string
	wants   *wants
	options tcp.Options // of the streams
	last    wire.Go     // what it is to say
}

// made is a carrier that has no comm yet.
type made struct {
	by    carrier.Carrier
	drop  func() // ends what by was made of
	apart bool   // by does not use the comm's first stream, which is closed
}

// last serves a comm's first stream from lanes to go. What a way makes takes the
// place of what was made before; the carrier that go takes up is in's from then on.
func (h *handshake) last(in *inbound) error {
	var held *made
	var of *way
	discard := func() {
		if held != nil {
			held.drop()
			held = nil
		}
	}
	defer func() { discard() }()
	for asked := 0; ; asked++ {
		frame, err := readFrame(h.conn)
		if err != nil {
			return &streamError{fmt.Errorf("waiting for go: %w", err)}
		}
		kind := wire.KindOf(frame)
		i := slices.IndexFunc(ways, func(w way) bool { return w.asks != 0 && w.asks == kind })
		if i < 0 {
			m, err := wire.ParseGo(frame)
			if err != nil {
				return err
			}
			taken := &ways[slices.IndexFunc(ways, func(w way) bool { return m.Flags&w.takes == w.takes })]
			if of != taken {
				discard()
			}
			if taken.asks != 0 && held == nil {
				return fmt.Errorf("go takes up an offer that was not accepted: %w", wire.ErrMalformed)
			}
			if taken.allows != nil {
				if err := taken.allows(h, in, &m); err != nil {
					in.fail(err)
					return err
				}
			}
			in.goes(m, h.conn, held)
			held = nil
			return nil
		}
		discard()
		if of = &ways[i]; asked == of.limit {
			return fmt.Errorf("more than %d frames of kind %d: %w", of.limit, kind, wire.ErrMalformed)
		}
		if held, err = of.serve(h, in, frame); err != nil {
			return err
		}
	}
}

// overStreams opens the comm's further streams.
func (k *connector) overStreams(ctx context.Context, d *dialogue) (*made, error) {
	conns, err := k.streams(ctx, d.won, d.wants.streams, d.options)
	drop := func() {
		for _, c := range conns {
			c.Close()
		}
	}
	if err != nil {
		drop()
		return nil, err
	}
	return &made{by: k.ctx.overTCP(k.dev, fastpath.Send, d.peer, conns, d.wants.stash), drop: drop}, nil
}

// allowsStreams says that an RDMA device's comm goes over TCP, unless it must not.
func (h *handshake) allowsStreams(in *inbound, m *wire.Go) error {
	dev, why := h.listener.dev, "the connecting side says: "+m.NoRDMA
	if err := h.core.mayUseTCP("accept", dev, in.peer, why); err != nil {
		return err
	}
	if dev.Verbs != nil {
		tellTCP(h.listener.ctx.opts.Log, dev, "<-", in.peer, why)
	}
	return nil
}
