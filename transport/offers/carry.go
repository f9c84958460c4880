package offers

import (
	"context"
	"fmt"
	"time"

	"weft/transport/lanes"
	"weft/transport/rendezvous"
	"weft/transport/route"
	"weft/transport/wire"
)

// streamError is a failure of the stream that offers travel on, after which
// there is nothing to try.
type streamError struct{ error }

func (e *streamError) Unwrap() error { return e.error }

// carry makes this side's first lanes, unless they are a kit's, has the peer make
// its own, and proves that bytes arrive. Whatever fails leaves nothing behind here;
// the peer discards its lanes when it reads what comes next.
func (c *caller) carry(ctx context.Context, pairs []route.Pair, at []int, first int, m *wire.Offer, again *lanes.Kit) (_ *lanes.Carrier, err error) {
	v, err := c.way.Queues.Carrier(c.way.options(&c.For, pairs, at), first, again)
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
	answer, err := exchangeOffer(ctx, c.Won, m, c.way.Queues.Timeout)
	if err != nil {
		return nil, &streamError{err}
	}
	if answer.Reason != "" {
		return nil, &lanes.PairError{Pair: &pairs[min(int(answer.Pair), len(pairs)-1)], Err: refused(answer.Reason, answer.Flags&wire.FlagFinal != 0)}
	}
	ctx, cancel := context.WithTimeout(ctx, c.way.Queues.OfferLimit())
	defer cancel()
	if err := v.Answered(ctx, &answer); err != nil {
		return nil, err
	}
	return v, nil
}

func exchangeOffer(ctx context.Context, w *rendezvous.Won, m *wire.Offer, limit time.Duration) (wire.Answer, error) {
	w.Conn.SetDeadline(time.Now().Add(limit))
	if ctx.Err() != nil { // it may have cut the connection before the deadline was set anew
		return wire.Answer{}, context.Cause(ctx)
	}
	if err := w.Say(m.Append(nil)); err != nil {
		return wire.Answer{}, fmt.Errorf("sending an offer: %w", err)
	}
	frame, err := w.Conn.Frame()
	if err != nil {
		return wire.Answer{}, fmt.Errorf("waiting for the answer to an offer: %w", err)
	}
	return wire.ParseAnswer(frame)
}
