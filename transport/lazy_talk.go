package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// furtherWaiting bounds the offers that wait here: a peer sends the next when it
// has the answer, or has given up waiting for one.
const furtherWaiting = 256

// serveFurther acts on a message about further lanes. It waits for nothing.
func (s *session) serveFurther(b []byte) error {
	k := wire.KindOf(b)
	if (k == wire.KindFurther) == s.active {
		return fmt.Errorf("%s from the wrong side: %w", k, wire.ErrMalformed)
	}
	if k == wire.KindFurther {
		m, err := wire.ParseFurther(b)
		if err != nil {
			return err
		}
		if n := s.growth.followed.add(s.core.cfg.Log, func() { s.acceptFurther(&m) }); n > furtherWaiting {
			return fmt.Errorf("%d offers of further lanes at once: %w", n, wire.ErrMalformed)
		}
		return nil
	}
	m, err := wire.ParseFurtherAnswer(b)
	if err != nil {
		return err
	}
	if v := furtherOf(s.comm(m.Comm), fastpath.Send); v != nil {
		select {
		case v.more.answers <- &m:
		default: // it answers twice
		}
	}
	return nil
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
func (s *session) acceptFurther(m *wire.Further) {
	ctx, cancel := context.WithTimeout(s.life, s.core.offerLimit())
	defer cancel()
	answer := wire.FurtherAnswer{Header: wire.Header{Comm: m.Comm}}
	err := errors.New("no such connection over RDMA")
	if v := furtherOf(s.awaited(ctx, m.Comm), fastpath.Recv); v != nil {
		answer.Lanes, err = v.acceptFurther(ctx, m.Lanes)
	}
	if err != nil {
		answer.Lanes, answer.Reason = nil, reasonOf(err)
		if s.life.Err() == nil {
			s.core.cfg.Log.Info(rdma.Net, "%s: further lanes refused: %v", s.name, err)
		}
	}
	s.tell(&answer)
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
