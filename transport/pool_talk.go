package transport

import (
	"context"
	"errors"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/lanes"
	"weft/transport/rendezvous"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

// tryAgain offers the queue pairs of a closed connection, if this side has any
// that suit. nil without an error means new ones: what was offered is gone. An
// error is one after which there is nothing to try.
func (k *connector) tryAgain(ctx context.Context, s *session.Session, w *rendezvous.Won, peer string, pairs []route.Pair, at []int, m wire.Offer) (*lanes.Carrier, error) {
	t := k.ctx.tune(fastpath.Send, pairs, len(at))
	old := k.core.pool.Take(func(have *lanes.Kit) bool { return have.From == s && have.Suits(k.dev, pairs, at, t, m.SL, m.TC) })
	if old == nil {
		return nil, nil
	}
	m.Flags |= wire.FlagReuse
	m.Session, m.Comm = s.ID, old.Number
	v, err := k.carry(ctx, w, peer, pairs, at, len(old.Lanes), &m, old)
	lost, final := (*streamError)(nil), (*finalError)(nil)
	if err == nil || errors.As(err, &lost) || errors.As(err, &final) {
		return v, err
	}
	k.ctx.opts.Log.Info(report.Net, "%s -> %s: new queue pairs, not an earlier connection's: %v", k.dev.Name, peer, err)
	return nil, nil
}

// again finds the kit that an offer names.
func (h *handshake) again(ctx context.Context, m *wire.Offer, pairs []route.Pair, at []int) (*lanes.Kit, error) {
	gone := errors.New("they are gone")
	s := h.core.sessions.From(h.hello.Process, m.Session)
	if s == nil {
		return nil, gone
	}
	t := h.listener.ctx.tune(fastpath.Recv, pairs, len(at))
	suits := func(have *lanes.Kit) bool {
		return have.From == s && have.Number == m.Comm && len(have.Lanes) == len(m.Lanes) && have.Suits(h.listener.dev, pairs, at, t, m.SL, h.core.cfg.Verbs.ReceiverTC(m.TC))
	}
	const look = time.Millisecond
	for end := time.Now().Add(lanes.SettleLimit); ; time.Sleep(look) {
		closing := s.Has(m.Comm) // the peer may have heard first that both have closed
		if k := h.core.pool.Take(suits); k != nil {
			return k, nil
		}
		if !closing || ctx.Err() != nil || time.Now().After(end) {
			return nil, gone
		}
	}
}
