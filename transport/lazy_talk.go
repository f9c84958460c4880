package transport

import (
	"context"
	"fmt"
	"time"

	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/wire"
)

// furtherWaiting bounds the offers that wait here: a peer sends the next when it
// has the answer, or has given up waiting for one.
const furtherWaiting = 256

// serveFurther acts on a message about further lanes. It waits for nothing.
func (c *Core) serveFurther(s *session.Session, b []byte) error {
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
		if n := s.Growth.Followed.Add(c.cfg.Log, func() { c.acceptFurther(s, &m) }); n > furtherWaiting {
			return fmt.Errorf("%d offers of further lanes at once: %w", n, wire.ErrMalformed)
		}
	case wire.KindJoin:
		m, err := wire.ParseJoin(b)
		if err != nil {
			return err
		}
		if v := furtherOf(commOf(s, m.Comm), fastpath.Recv); v != nil {
			hand(v.more.joins, &m)
		}
	case wire.KindFurtherAnswer:
		m, err := wire.ParseFurtherAnswer(b)
		if err != nil {
			return err
		}
		if v := furtherOf(commOf(s, m.Comm), fastpath.Send); v != nil {
			hand(v.more.answers, &m)
		}
	default:
		m, err := wire.ParseJoined(b)
		if err != nil {
			return err
		}
		if v := furtherOf(commOf(s, m.Comm), fastpath.Send); v != nil {
			hand(v.more.joined, &m)
		}
	}
	return nil
}

// hand gives a message to who waits for it, or will. What a peer says twice is lost.
func hand[M any](to chan *M, m *M) {
	select {
	case to <- m:
	default:
	}
}

// furtherOf is what carries a comm, if that may have further lanes.
func furtherOf(c *Comm, kind fastpath.Kind) *verbsCarrier {
	if c == nil || c.kind != kind {
		return nil
	}
	v, _ := c.carrier.(*verbsCarrier)
	return v
}

// acceptFurther makes this side of further lanes and answers.
func (c *Core) acceptFurther(s *session.Session, offer *wire.Further) {
	ctx, cancel := context.WithTimeout(s.Life, c.offerLimit())
	x := awaited(ctx, s, offer.Comm)
	cancel()
	v := furtherOf(x, fastpath.Recv)
	refuse := func(why string) {
		s.Tell(&wire.FurtherAnswer{Header: wire.Header{Comm: offer.Comm}, Reason: why})
	}
	if v == nil {
		refuse("no such connection over RDMA")
		return
	}
	g, err := v.grow(x.Member())
	if err != nil {
		refuse(err.Error())
		return
	}
	defer g.end()
	last, err := v.acceptFurther(g, offer)
	g.say(0, err)
	if last != nil {
		s.Tell(last)
	}
}

// awaited finds a comm of the session that may still be on its way to be built
// here, while its other end is open.
func awaited(ctx context.Context, s *session.Session, id uint64) *Comm {
	const look = 2 * time.Millisecond
	for {
		c, open := s.Known(id)
		if !open {
			return nil
		}
		if c != nil || ctx.Err() != nil {
			return asComm(c)
		}
		time.Sleep(look)
	}
}

// commOf is the comm of an id; nil: it is not built, or closed.
func commOf(s *session.Session, id uint64) *Comm { return asComm(s.Comm(id)) }

func asComm(c session.Comm) *Comm {
	mine, _ := c.(*Comm)
	return mine
}
