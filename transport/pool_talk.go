package transport

import (
	"context"
	"errors"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

// tryAgain offers the queue pairs of a closed connection, if this side has any
// that suit. nil without an error means new ones: what was offered is gone. An
// error is one after which there is nothing to try.
func (k *connector) tryAgain(ctx context.Context, s *session.Session, w *rendezvous.Won, peer string, pairs []route.Pair, at []int, m wire.Offer) (*verbsCarrier, error) {
	t := k.ctx.tune(fastpath.Send, pairs, len(at))
	old := k.core.pool.Take(func(have *kit) bool { return have.session == s && have.suits(k.dev, pairs, at, t, m.SL, m.TC) })
	if old == nil {
		return nil, nil
	}
	m.Flags |= wire.FlagReuse
	m.Session, m.Comm = s.ID, old.comm
	v, err := k.carry(ctx, w, peer, pairs, at, len(old.lanes), &m, old)
	lost, final := (*streamError)(nil), (*finalError)(nil)
	if err == nil || errors.As(err, &lost) || errors.As(err, &final) {
		return v, err
	}
	k.ctx.opts.Log.Info(report.Net, "%s -> %s: new queue pairs, not an earlier connection's: %v", k.dev.Name, peer, err)
	return nil, nil
}

// again finds the kit that an offer names.
func (h *handshake) again(ctx context.Context, m *wire.Offer, pairs []route.Pair, at []int) (*kit, error) {
	gone := errors.New("they are gone")
	s := h.core.sessions.From(h.hello.Process, m.Session)
	if s == nil {
		return nil, gone
	}
	t := h.listener.ctx.tune(fastpath.Recv, pairs, len(at))
	suits := func(have *kit) bool {
		return have.session == s && have.comm == m.Comm && len(have.lanes) == len(m.Lanes) && have.suits(h.listener.dev, pairs, at, t, m.SL, h.core.cfg.Verbs.ReceiverTC(m.TC))
	}
	const look = time.Millisecond
	for end := time.Now().Add(settleLimit); ; time.Sleep(look) {
		closing := s.Has(m.Comm) // the peer may have heard first that both have closed
		if k := h.core.pool.Take(suits); k != nil {
			return k, nil
		}
		if !closing || ctx.Err() != nil || time.Now().After(end) {
			return nil, gone
		}
	}
}
