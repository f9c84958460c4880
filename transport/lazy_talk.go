package transport

import (
	"context"
	"fmt"
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

// furtherWaiting bounds the offers that wait here: a peer sends the next when it
// has the answer, or has given up waiting for one.
const furtherWaiting = 256

// serveFurther acts on a message about further lanes. It waits for nothing.
func (s *session) serveFurther(b []byte) error {
	k := wire.KindOf(b)
	if (k == wire.KindFurther || k == wire.KindJoin) == s.active {
		return fmt.Errorf("%s from the wrong side: %w", k, wire.ErrMalformed)
	}
	switch k {
	case wire.KindFurther:
		m, err := wire.ParseFurther(b)
		if err != nil {
			return err
		}
		if n := s.growth.followed.Add(s.core.cfg.Log, func() { s.acceptFurther(&m) }); n > furtherWaiting {
			return fmt.Errorf("%d offers of further lanes at once: %w", n, wire.ErrMalformed)
		}
	case wire.KindJoin:
		m, err := wire.ParseJoin(b)
		if err != nil {
			return err
		}
		if v := furtherOf(s.comm(m.Comm), fastpath.Recv); v != nil {
			hand(v.more.joins, &m)
		}
	case wire.KindFurtherAnswer:
		m, err := wire.ParseFurtherAnswer(b)
		if err != nil {
			return err
		}
		if v := furtherOf(s.comm(m.Comm), fastpath.Send); v != nil {
			hand(v.more.answers, &m)
		}
	default:
		m, err := wire.ParseJoined(b)
		if err != nil {
			return err
		}
		if v := furtherOf(s.comm(m.Comm), fastpath.Send); v != nil {
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
func (s *session) acceptFurther(offer *wire.Further) {
	ctx, cancel := context.WithTimeout(s.life, s.core.offerLimit())
	c := s.awaited(ctx, offer.Comm)
	cancel()
	v := furtherOf(c, fastpath.Recv)
	refuse := func(why string) {
		s.tell(&wire.FurtherAnswer{Header: wire.Header{Comm: offer.Comm}, Reason: why})
	}
	if v == nil {
		refuse("no such connection over RDMA")
		return
	}
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	g, err := v.grow(m)
	if err != nil {
		refuse(err.Error())
		return
	}
	defer g.end()
	last, err := v.acceptFurther(g, offer)
	g.say(c, 0, err)
	if last != nil {
		s.tell(last)
	}
}

// awaited finds a comm of the session that may still be on its way to be built
// here, while its other end is open.
func (s *session) awaited(ctx context.Context, id uint64) *Comm {
	const look = 2 * time.Millisecond
	for {
		known := false
		var c *Comm
		s.withMember(id, func(m *member) { known, c = m.failed == nil && !m.closed, m.comm })
		if !known || c != nil || ctx.Err() != nil {
			return c
		}
		time.Sleep(look)
	}
}
