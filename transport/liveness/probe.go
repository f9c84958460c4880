package liveness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/task"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// probe is this side of a queue pair that carries no data. By it either side asks
// whether packets still pass between two ports: it writes 0 bytes and waits for
// the acknowledgement, which is the NIC's, not the process's.
//
//	connecting side           listening side
//	make        -- offer -->  make, connect
//	connect    <-- answer --
//	ask it     -- works --->  from now on both may ask
//	            <- gone, silent ->
//
// The connecting side decides: it makes one for each pair of ports that comms of
// the session use, and each class of their traffic, makes it anew when it has
// broken, and ends it when the last of them has ended. A goroutine on each side
// owns the queue pair.
type probe struct {
	watch   *Watcher
	key     key
	pair    route.Pair
	ctx     context.Context // its life: the session's, or shorter
	cancel  context.CancelCauseFunc
	wanted  chan struct{} // somebody wants to know
	answers chan wire.QPEnd

	number uint32 // protected by watch.mu, as all below
	works  bool
	next   time.Time               // not asked before
	end    *probeEnd               // this side's; nil while it is made or torn down
	giveUp context.CancelCauseFunc // ends it, or the attempt to make it
}

var (
	errUnused   = errors.New("no connection uses it any more")
	errReplaced = errors.New("the peer offers another")

	errEndedThere = errors.New("the peer ended it")
	errNoAnswer   = errors.New("the peer has not answered the offer of one")
)

// probeRest follows a failure; it doubles up to probeRestMost.
const (
	probeRest     = time.Second
	probeRestMost = 32 * time.Second
)

// newProbe enters a probe; watch.mu is held.
func (w *Watcher) newProbe(k key, pair *route.Pair) *probe {
	p := &probe{watch: w, key: k, pair: *pair, wanted: make(chan struct{}, 1), answers: make(chan wire.QPEnd, 1)}
	p.ctx, p.cancel = context.WithCancelCause(k.session.Life)
	p.giveUp = p.cancel // until a round has its own: what comes before that must not be lost
	w.probes[k] = p
	return p
}

// drop takes out a probe that has ended, unless another is in its place.
func (w *Watcher) drop(p *probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.probes[p.key] == p {
		delete(w.probes, p.key)
	}
}

// lead starts the connecting side's part; watch.mu is held.
func (w *Watcher) lead(k key, pair *route.Pair) *probe {
	p := w.newProbe(k, pair)
	go func() {
		defer task.Rescue(w.cfg.Log, "probe", task.Nobody) // what it leaves in its place keeps others from the same defect
		p.keep()
		w.drop(p)
		p.cancel(nil)
	}()
	return p
}

// keep makes the queue pair, again and again if need be.
func (p *probe) keep() {
	said := false
	for rest := probeRest; ; rest = min(2*rest, probeRestMost) {
		p.watch.mu.Lock()
		p.watch.number++
		p.number = p.watch.number
		select {
		case <-p.answers: // to an offer that was given up
		default:
		}
		p.watch.mu.Unlock()
		worked, err := p.round(p.meet)
		if p.ctx.Err() != nil || !p.watch.uses(p.key) { // the peer may have heard of the last connection's end first
			return
		}
		if worked {
			rest, said = probeRest, false
		}
		passing := errors.Is(err, errEndedThere) || errors.Is(err, errNoAnswer) // the peer may have no connection yet, or be busy
		if !said && !(passing && rest == probeRest) {
			said = true
			p.watch.cfg.Log.Info(report.Net, "%v", report.Errorf(report.Network, "probe", "%w", err).On(p.pair.Local.Name).With(p.key.session.Name).
				Try("until one works, the NIC's own retries decide whether this path is dead"))
		}
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// meet is the connecting side's way to a probe that works.
func (p *probe) meet(ctx context.Context, e *probeEnd) error {
	limit := p.watch.offer
	sl, tc := p.key.class.SL, p.key.class.TC
	p.key.session.Tell(&wire.ProbeOffer{Number: e.number, SL: sl, TC: tc, End: e.local()})
	var theirs wire.QPEnd
	select {
	case theirs = <-p.answers:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(limit):
		return fmt.Errorf("%w within %v", errNoAnswer, limit)
	}
	if err := e.connect(ctx, limit, &theirs, sl, tc); err != nil {
		return err
	}
	if err := e.ask(ctx); err != nil {
		return err
	}
	p.stands(e, true)
	p.key.session.Tell(&wire.ProbeState{Number: e.number, State: wire.ProbeWorks})
	return nil
}

// follow is the listening side's part.
func (p *probe) follow(m *wire.ProbeOffer) {
	defer task.Rescue(p.watch.cfg.Log, "probe", task.Nobody)
	defer p.cancel(nil)
	defer p.watch.drop(p)
	p.round(func(ctx context.Context, e *probeEnd) error {
		if err := e.connect(ctx, p.watch.offer, &m.End, m.SL, p.watch.cfg.ReceiverTC(m.TC)); err != nil {
			return err
		}
		p.stands(e, false)
		p.key.session.Tell(&wire.ProbeAnswer{Number: m.Number, End: e.local()})
		return nil
	})
}

// round is the life of one queue pair, and why it ended; worked tells whether
// it was of use before.
func (p *probe) round(meet func(context.Context, *probeEnd) error) (worked bool, err error) {
	ctx, giveUp := context.WithCancelCause(p.ctx)
	defer giveUp(nil)
	p.watch.mu.Lock()
	p.giveUp = giveUp
	number := p.number
	p.watch.mu.Unlock()
	e, err := newEnd(&p.pair, number, p.watch.limit, p.watch.cfg.Log)
	if err == nil {
		defer e.close()
		if err = meet(ctx, e); err == nil {
			worked, err = true, p.serve(ctx, e)
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	p.stands(nil, false)
	p.lost(number, err)
	return worked, err
}

// serve asks when the watcher wants to know, until that fails or it is over.
func (p *probe) serve(ctx context.Context, e *probeEnd) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.wanted:
			if err := e.ask(ctx); err != nil {
				return judge(ctx, err, p.watch.limit, p.pair.Local.Down)
			}
		}
	}
}

// ask has the queue pair used soon.
func (p *probe) ask() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// judge tells what a question that failed says. On a port that is down it fails at
// once with some cards (Soft-RoCE: LOC_QP_OP_ERR): if the port is down still when
// an answer would be overdue, the path is as dead as one that is silent. On others
// the probe alone has failed, and the peer must hear so before it asks by it.
func judge(ctx context.Context, err error, overdue time.Duration, down func() string) error {
	var u *qp.Unanswered
	var failed *report.Error
	if errors.As(err, &u) || !errors.As(err, &failed) || down() == "" {
		return err
	}
	select {
	case <-ctx.Done():
		return err
	case <-time.After(overdue):
	}
	if down() == "" {
		return err
	}
	return &qp.Unanswered{Err: failed}
}

// stands says what queue pair there is, and whether it was proven.
func (p *probe) stands(e *probeEnd, works bool) {
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	p.end, p.works = e, works
}

// lost acts on what ended the queue pair, and tells the peer.
func (p *probe) lost(number uint32, why error) {
	state := uint8(wire.ProbeGone)
	var u *qp.Unanswered
	if errors.As(why, &u) {
		state = wire.ProbeSilent
		p.key.session.Ports.Narrowed(&p.pair, u) // for the connections that follow
		p.watch.silent(p, u)
	}
	if p.key.session.Life.Err() == nil {
		p.key.session.TellLater(&wire.ProbeState{Number: number, State: state, Reason: report.Reason(why)})
	}
}
