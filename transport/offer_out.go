package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/lanes"
	"weft/transport/rendezvous"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

// offer tries to have the comm carried by RDMA: over a few routes, each made,
// connected and proven. Without a carrier and an error it goes over TCP, and go
// says why. An error is one of the comm's first stream, or TCP is not wanted.
func (k *connector) offer(ctx context.Context, d *dialogue) (*made, error) {
	v, why, err := k.route(ctx, d)
	if err != nil {
		return nil, err
	}
	if v != nil {
		d.last.Flags = wire.FlagVerbs
		return &made{by: v, drop: v.Discard, apart: true}, nil
	}
	if err := k.core.mayUseTCP("connect", k.dev, d.peer, why); err != nil {
		return nil, err
	}
	if k.dev.Verbs != nil {
		tellTCP(k.ctx.opts.Log, k.dev, "->", d.peer, why)
	}
	d.last.NoRDMA = why
	return nil, nil
}

// route tries the routes; without a carrier and an error it returns why none serves.
func (k *connector) route(ctx context.Context, d *dialogue) (*lanes.Carrier, string, error) {
	s, peer, wants := d.session, d.peer, d.wants
	if why := k.core.whyNoPorts(k.dev); why != "" {
		return nil, why, nil
	}
	tried := k.dev.OutOfUse()
	bad := map[[2]uint16]bool{}
	fails := func(p *route.Pair, err error) {
		bad[p.Key()] = true
		tried = append(tried, fmt.Sprintf("%s to its device %d (%v): %v", p.Local.Name, p.PeerIndex, p.Reach, err))
	}
	for tries := 0; tries < route.Trials; {
		pairs := k.core.route(k.dev, s.Devices, wants.ports, bad)
		if len(pairs) == 0 {
			break
		}
		rests := false
		for i := range pairs {
			if err := s.Ports.Failure(&pairs[i]); err != nil {
				fails(&pairs[i], err)
				rests = true
			}
		}
		if rests {
			continue
		}
		s.Ports.Limit(pairs)
		tries++
		began := time.Now()
		v, err := k.try(ctx, s, d.won, peer, pairs)
		if err == nil {
			if len(tried) > 0 {
				k.ctx.opts.Log.Info(report.Net, "%s -> %s: left out: %s", k.dev.Name, peer, strings.Join(tried, "; "))
			}
			k.tellOtherPorts(peer, pairs, s, wants.ports, tried)
			s.Ports.SayNarrow(pairs, k.dev.Name, peer, k.ctx.opts.Log)
			k.sayRails(peer, pairs, s.Devices)
			return v, "", nil
		}
		if lost := (*streamError)(nil); errors.As(err, &lost) {
			return nil, "", lost.error
		}
		if final := (*finalError)(nil); errors.As(err, &final) {
			return nil, "", withPeer(final.error, peer)
		}
		blame := &pairs[len(pairs)-1] // whatever the reason, a shorter route comes next
		if e := (*lanes.PairError)(nil); errors.As(err, &e) {
			blame = e.Pair
		}
		if s.Ports.Narrowed(blame, err) {
			continue
		}
		s.Ports.Failed(blame, time.Since(began), err)
		fails(blame, err)
	}
	switch {
	case len(tried) > 0:
		return nil, strings.Join(tried, "; "), nil
	case len(wants.ports) == 0:
		return nil, noPorts(wants.noPorts), nil
	}
	return nil, "the peer has no RDMA device that shares a subnet with one here, or was asked for and can be routed to", nil
}

// streamError is a failure of the stream that offers travel on, after which
// there is nothing to try.
type streamError struct{ error }

func (e *streamError) Unwrap() error { return e.error }

// try has a route carry the comm, by the lanes of a closed connection if there
// are any, else by new ones.
func (k *connector) try(ctx context.Context, s *session.Session, w *rendezvous.Won, peer string, pairs []route.Pair) (*lanes.Carrier, error) {
	at := lanes.Spread(len(pairs), k.core.lanesFor(len(pairs)))
	anyOrder, err := k.core.anyOrder(pairs)
	if err != nil {
		return nil, err
	}
	var m wire.Offer
	m.SL, m.TC = k.core.cfg.Verbs.Class(k.trafficClass)
	if anyOrder {
		m.Flags = wire.FlagAnyOrder
	}
	if v, err := k.tryAgain(ctx, s, w, peer, pairs, at, m); v != nil || err != nil {
		return v, err
	}
	first := len(at)
	if k.core.lanes.Lazy() {
		first = 1
	}
	return k.carry(ctx, w, peer, pairs, at, first, &m, nil)
}

// carry makes this side's first lanes, unless they are a kit's, has the peer make
// its own, and proves that bytes arrive. Whatever fails leaves nothing behind here;
// the peer discards its lanes when it reads what comes next.
func (k *connector) carry(ctx context.Context, w *rendezvous.Won, peer string, pairs []route.Pair, at []int, first int, m *wire.Offer, again *lanes.Kit) (_ *lanes.Carrier, err error) {
	v, err := k.core.lanes.Carrier(k.ctx.lanes(k.dev, fastpath.Send, peer, pairs, at), first, again)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.Discard()
		}
	}()
	if err := v.Offer(m); err != nil {
		return nil, err
	}
	answer, err := exchangeOffer(ctx, w.Conn, m, k.core.timeout)
	if err != nil {
		return nil, &streamError{err}
	}
	if answer.Reason != "" {
		return nil, &lanes.PairError{Pair: &pairs[min(int(answer.Pair), len(pairs)-1)], Err: refused(answer.Reason, answer.Flags&wire.FlagFinal != 0)}
	}
	ctx, cancel := context.WithTimeout(ctx, k.core.lanes.OfferLimit())
	defer cancel()
	if err := v.Answered(ctx, &answer); err != nil {
		return nil, err
	}
	return v, nil
}

func exchangeOffer(ctx context.Context, c *rendezvous.Conn, m *wire.Offer, limit time.Duration) (wire.Answer, error) {
	c.SetDeadline(time.Now().Add(limit))
	if ctx.Err() != nil { // it may have cut the connection before the deadline was set anew
		return wire.Answer{}, context.Cause(ctx)
	}
	if _, err := c.Write(m.Append(nil)); err != nil {
		return wire.Answer{}, fmt.Errorf("sending an offer: %w", err)
	}
	frame, err := readFrame(c)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("waiting for the answer to an offer: %w", err)
	}
	return wire.ParseAnswer(frame)
}

// readFrame reads one message and not a byte more: on a comm's first stream
// data may follow.
func readFrame(c *rendezvous.Conn) ([]byte, error) {
	b := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	n, err := wire.FrameLength(b)
	if err != nil || n == len(b) {
		return b, err
	}
	b = append(b, make([]byte, n-len(b))...)
	_, err = io.ReadFull(c, b[wire.HeaderSize:])
	return b, err
}

// lanesFor is how many queue pairs a comm over so many pairs of ports gets.
func (c *Core) lanesFor(pairs int) int {
	n, most := int(c.cfg.Knobs.Int(knob.IBQPsPerConnection)), wire.MaxLanes/pairs
	if n > most {
		c.manyLanes.Do(func() {
			c.cfg.Log.Warn("NCCL_IB_QPS_PER_CONNECTION=%d is more than a connection over %d pair%s of ports can have; each gets %d", n, pairs, report.Plural(pairs), most)
		})
	}
	return pairs * max(1, min(n, most))
}
