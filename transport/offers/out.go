package offers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/wire"
)

// Connect tries to have the comm carried by RDMA: over a few routes, each made,
// connected and proven. Without a carrier and an error it goes over TCP, and go
// says why. An error is one of the comm's first stream, or TCP is not wanted.
func (w *Way) Connect(ctx context.Context, call *carrier.Call) (*carrier.Made, error) {
	c := &caller{w, call}
	v, why, err := c.route(ctx)
	if err != nil {
		return nil, err
	}
	if v != nil {
		c.Go.Flags = wire.FlagVerbs
		return made(v), nil
	}
	if err := w.mayUseTCP("connect", c.Device, c.Peer, why); err != nil {
		return nil, err
	}
	if c.Device.Verbs != nil {
		tellTCP(c.Log, c.Device, "->", c.Peer, why)
	}
	c.Go.NoRDMA = why
	return nil, nil
}

// route tries the routes; without a carrier and an error it returns why none serves.
func (c *caller) route(ctx context.Context) (*lanes.Carrier, string, error) {
	s, asked := c.Session, c.Wants.Ports()
	if why := c.way.whyNoPorts(c.Device); why != "" {
		return nil, why, nil
	}
	tried := c.Device.OutOfUse()
	bad := map[[2]uint16]bool{}
	fails := func(p *route.Pair, err error) {
		bad[p.Key()] = true
		tried = append(tried, fmt.Sprintf("%s to its device %d (%v): %v", p.Local.Name, p.PeerIndex, p.Reach, err))
	}
	for tries := 0; tries < route.Trials; {
		pairs := c.way.route(c.Device, s.Devices, asked, bad)
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
		v, err := c.try(ctx, pairs)
		if err == nil {
			if len(tried) > 0 {
				c.Log.Info(report.Net, "%s -> %s: ports left out: %s", c.Device.Name, c.Peer, strings.Join(tried, "; "))
			}
			c.tellOtherPorts(pairs, asked, tried)
			s.Ports.SayNarrow(pairs, c.Device.Name, c.Peer, c.Log)
			c.sayRails(pairs)
			return v, "", nil
		}
		if lost := (*streamError)(nil); errors.As(err, &lost) {
			return nil, "", lost.error
		}
		if final := (*finalError)(nil); errors.As(err, &final) {
			return nil, "", withPeer(final.error, c.Peer)
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
	case len(asked) == 0:
		return nil, noPorts(c.Wants.NoRDMA), nil
	}
	return nil, "the peer has no RDMA device that shares a subnet with one here, or was asked for and can be routed to", nil
}

// try has a route carry the comm, by the lanes of a closed connection if there
// are any, else by new ones.
func (c *caller) try(ctx context.Context, pairs []route.Pair) (*lanes.Carrier, error) {
	at := lanes.Spread(len(pairs), c.way.lanesFor(len(pairs)))
	anyOrder, err := c.way.anyOrder(pairs)
	if err != nil {
		return nil, err
	}
	var m wire.Offer
	m.SL, m.TC = c.way.Provider.Class(c.TrafficClass)
	if anyOrder {
		m.Flags = wire.FlagAnyOrder
	}
	if v, err := c.tryAgain(ctx, pairs, at, m); v != nil || err != nil {
		return v, err
	}
	first := len(at)
	if c.way.Queues.Lazy() {
		first = 1
	}
	return c.carry(ctx, pairs, at, first, &m, nil)
}
