package lanes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

// furtherWaiting bounds the offers that wait here: a peer sends the next when it
// has the answer, or has given up waiting for one.
const furtherWaiting = 256

// Serve acts on a message about further lanes. It waits for nothing.
func (a *Shared) Serve(s *session.Session, b []byte) error {
	k := wire.KindOf(b)
	if (k == wire.KindFurther || k == wire.KindJoin) == s.Active {
		return fmt.Errorf("%s from the wrong side: %w", k, wire.ErrMalformed)
	}
	switch k {
	case wire.KindFurther:
		m, err := wire.ParseFurther(b)
		if err != nil {
			return err
		}
		if n := s.Background.Followed.Add(a.Log, func() { a.acceptFurther(s, &m) }); n > furtherWaiting {
			return fmt.Errorf("%d offers of further lanes at once: %w", n, wire.ErrMalformed)
		}
	case wire.KindJoin:
		m, err := wire.ParseJoin(b)
		if err != nil {
			return err
		}
		if v := furtherOf(s.Comm(m.Comm), fastpath.Recv); v != nil {
			hand(v.further.joins, &m)
		}
	case wire.KindFurtherAnswer:
		m, err := wire.ParseFurtherAnswer(b)
		if err != nil {
			return err
		}
		if v := furtherOf(s.Comm(m.Comm), fastpath.Send); v != nil {
			hand(v.further.answers, &m)
		}
	default:
		m, err := wire.ParseJoined(b)
		if err != nil {
			return err
		}
		if v := furtherOf(s.Comm(m.Comm), fastpath.Send); v != nil {
			hand(v.further.joined, &m)
		}
	}
	return nil
}

// hand gives a message to whoever waits for it, or will. A second one is dropped.
func hand[M any](to chan *M, m *M) {
	select {
	case to <- m:
	default:
	}
}

// furtherOf is what carries a comm, if that may have further lanes.
func furtherOf(c session.Comm, kind fastpath.Kind) *Carrier {
	comm, is := c.(carrier.Comm)
	if !is {
		return nil
	}
	v, is := comm.Carrier().(*Carrier)
	if !is || v.Kind != kind {
		return nil
	}
	return v
}

// awaited finds a comm of the session, and waits for one that is still being built
// here while its other end is open.
func awaited(ctx context.Context, s *session.Session, id uint64) session.Comm {
	const look = 2 * time.Millisecond
	for {
		c, open := s.Known(id)
		if !open {
			return nil
		}
		if c != nil || ctx.Err() != nil {
			return c
		}
		time.Sleep(look)
	}
}

// acceptFurther makes this side of further lanes and answers.
func (a *Shared) acceptFurther(s *session.Session, offer *wire.Further) {
	ctx, cancel := context.WithTimeout(s.Life, a.OfferLimit())
	v := furtherOf(awaited(ctx, s, offer.Comm), fastpath.Recv)
	cancel()
	refuse := func(why string) {
		s.Tell(&wire.FurtherAnswer{Header: wire.Header{Comm: offer.Comm}, Reason: why})
	}
	if v == nil {
		refuse("no such connection over RDMA")
		return
	}
	g, err := v.grow(v.comm.Member())
	if err != nil {
		refuse(err.Error())
		return
	}
	defer g.release()
	last, err := v.acceptFurther(g, offer)
	g.say(0, err)
	if last != nil {
		s.Tell(last)
	}
}

// acceptFurther is the listening side's part, but for the last message to the
// peer, nil for none: its host may close when it has that.
func (v *Carrier) acceptFurther(g *growth, offer *wire.Further) (last session.Frame, err error) {
	m, s := g.m, g.m.Session
	answer := wire.FurtherAnswer{Header: m.Header()}
	refuse := func(err error) (session.Frame, error) {
		answer.Reason = report.Reason(err)
		return &answer, err
	}
	if !v.further.begin() {
		return refuse(errors.New("they have been offered before"))
	}
	g.plan()
	if err := g.learn(offer.Keys, offer.Lanes, "not offered"); err != nil {
		return refuse(err)
	}
	if err := g.each(func(p *route.Pair, lanes []*lane) error {
		if err := g.makePair(p, lanes); err != nil {
			return err
		}
		if err := g.connectPair(lanes); err != nil {
			return err
		}
		return describeLanes(lanes, true)
	}); err != nil {
		return refuse(err)
	}
	answer.Reason, answer.Keys, answer.Lanes = strings.Join(g.lost, "; "), g.ringKeys(), endsOf(g.lanes)
	s.Tell(&answer)
	ready, err := await(g, v.further.joins)
	if err != nil {
		return nil, err
	}
	joined := wire.Joined{Header: m.Header()}
	if err = g.keep(ready.Pairs, errors.New("the connecting side leaves it out")); err == nil {
		err = g.each(g.provePair)
	}
	if err == nil {
		joined.Pairs = g.pairs()
		joined.From, err = g.join(0)
	}
	if joined.Reason = strings.Join(g.lost, "; "); err != nil {
		joined.Pairs, joined.From, joined.Reason = 0, 0, report.Reason(err)
	}
	return &joined, err
}
