package offers

import (
	"context"
	"errors"
	"time"

	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/wire"
)

// tryAgain offers the queue pairs of a closed connection, if this side has any
// that suit. nil without an error means new ones: what was offered is gone. An
// error is one after which there is nothing to try.
func (c *caller) tryAgain(ctx context.Context, pairs []route.Pair, at []int, m wire.Offer) (*lanes.Carrier, error) {
	s, t := c.Session, c.way.tune(&c.For, pairs, len(at))
	old := c.way.Queues.Pool.Take(func(have *lanes.Kit) bool {
		return have.Session() == s && have.Suits(c.Device, pairs, at, t, m.SL, m.TC)
	})
	if old == nil {
		return nil, nil
	}
	m.Flags |= wire.FlagReuse
	m.Session, m.Comm = s.ID, old.Comm()
	v, err := c.carry(ctx, pairs, at, old.Lanes(), &m, old)
	lost, final := (*streamError)(nil), (*finalError)(nil)
	if err == nil || errors.As(err, &lost) || errors.As(err, &final) {
		return v, err
	}
	c.Log.Info(report.Net, "%s -> %s: new QPs, not an earlier connection's: %v", c.Device.Name, c.Peer, err)
	return nil, nil
}

// again finds the kit that an offer names.
func (a *taker) again(ctx context.Context, m *wire.Offer, pairs []route.Pair, at []int) (*lanes.Kit, error) {
	gone := errors.New("they are gone")
	s := a.way.Sessions.From(a.From, m.Session)
	if s == nil {
		return nil, gone
	}
	t := a.way.tune(&a.For, pairs, len(at))
	suits := func(have *lanes.Kit) bool {
		return have.Session() == s && have.Comm() == m.Comm && have.Lanes() == len(m.Lanes) && have.Suits(a.Device, pairs, at, t, m.SL, a.way.Provider.ReceiverTC(m.TC))
	}
	const look = time.Millisecond
	for deadline := time.Now().Add(lanes.SettleLimit); ; time.Sleep(look) {
		closing := s.Has(m.Comm) // the peer may have heard first that both have closed
		if k := a.way.Queues.Pool.Take(suits); k != nil {
			return k, nil
		}
		if !closing || ctx.Err() != nil || time.Now().After(deadline) {
			return nil, gone
		}
	}
}
