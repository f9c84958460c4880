package lanes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/event"
	"weft/transport/wire"
)

// A connect makes and proves one lane. The further ones, more on the same ports
// (NCCL_IB_QPS_PER_CONNECTION) and those on the other ports of fused devices, come
// when the comm is open, all at once, over the session:
//
//	connecting side           listening side
//	make    -- further -->    make, connect
//	        <-- answer ---
//	connect, prove -- join -> prove, hand to the executor
//	        <-- joined ---
//	hand to the executor, which uses them for groups from that one on whose
//	receives have keys for every port
//
// The watch of the connecting side says when. A pair of ports for which anything
// fails is left out; the comm goes on with the lanes that it has.

// further is what a comm's further lanes are at.
type further struct {
	begun   atomic.Bool  // by either side; it is tried once
	busy    sync.Mutex   // held while they are made: the comm's end waits for that
	now     *growth      // protected by life
	told    atomic.Int32 // times that lost lanes were told
	answers chan *wire.FurtherAnswer
	joins   chan *wire.Join
	joined  chan *wire.Joined
}

func (g *further) init() {
	g.answers, g.joins, g.joined = make(chan *wire.FurtherAnswer, 1), make(chan *wire.Join, 1), make(chan *wire.Joined, 1)
}

// begin reports, once, that they may be made.
func (g *further) begin() bool { return g.begun.CompareAndSwap(false, true) }

var errOver = errors.New("the connection ended meanwhile")

// stop has the making of further lanes end soon.
func (g *further) stop(v *Carrier, why error) {
	v.life.Lock()
	defer v.life.Unlock()
	if g.now != nil {
		g.now.cancel(why)
	}
}

// close ends it for good, before v is destroyed.
func (g *further) close(v *Carrier) {
	v.life.Lock()
	v.dead = true
	v.life.Unlock()
	g.stop(v, errOver)
	g.busy.Lock()
	defer g.busy.Unlock()
}

// hit ends it for a fatal event that means what is being made.
func (g *further) hit(v *Carrier, e *event.Event) {
	means := e.QP != nil && e.QP.Cookie == v.cookie
	for i := range v.Pairs {
		means = means || e.QP == nil && e.CQ == nil && v.Pairs[i].Local.NIC == e.NIC
	}
	if means {
		g.stop(v, e.Err)
	}
}

// ripe reports once that it is time for the further lanes of v.
func (v *Carrier) ripe() bool {
	if v.further.begun.Load() || len(*v.routes.Load()) == len(v.PairAt) {
		return false
	}
	onDemand := v.shared.Knobs.Text(knob.Lazy) == "demand"
	if onDemand && v.fp.Snapshot().Bytes <= uint64(v.Tuning.StripeMin) {
		return false
	}
	return v.further.begin()
}

// growLater is the connecting side's part, in the background.
func (v *Carrier) growLater(s *session.Session) {
	s.Background.Led.Add(v.Log, func() {
		m := v.comm.Member()
		v.shared.quiet(s.Life)
		g, err := v.grow(m)
		if err != nil {
			return // the comm is over
		}
		defer g.release()
		before := len(v.lanes)
		err = v.offerFurther(g)
		g.say(before, err)
	})
}

// say tells what has come of it; before there were so many lanes.
func (g *growth) say(before int, err error) {
	v, log := g.v, g.v.Log
	c := v.comm
	if err != nil {
		g.lost = append(g.lost, err.Error())
	}
	switch {
	case c.Over() || errors.Is(err, errOver) || g.m.Session.Life.Err() != nil:
	case len(g.lost) > 0:
		if g.says() {
			log.Info(report.Net, "%v goes on with %d of %d lanes: %s", c, len(v.lanes), len(v.PairAt), report.Few(g.lost, 8, "; "))
		}
	case v.Kind == fastpath.Send:
		log.Info(report.Net, "%v has %d lanes now%s (QPs %s)", c, len(v.lanes), v.newRoutes(before), numbers(v.lanes[before:]))
	}
}

// says reports whether a growth that lost lanes is told. A comm that the peer lets grow
// again and again, more often than there are lanes to lose, has its allowance of lines.
func (g *growth) says() bool {
	return int(g.v.further.told.Add(1)) <= len(g.v.PairAt) || g.m.Session.Says()
}

// newRoutes names the pairs of ports that have come with the lanes from one on.
func (v *Carrier) newRoutes(from int) string {
	known := map[*route.Pair]bool{}
	var all []string
	for i, l := range v.lanes {
		if i >= from && !known[l.pair] {
			all = append(all, describePair(l.pair, v.lanes))
		}
		known[l.pair] = true
	}
	if len(all) == 0 {
		return ""
	}
	return ", on " + report.Few(all, 4, ", ") + " too"
}

// offerFurther has the peer make its ends.
func (v *Carrier) offerFurther(g *growth) error {
	m, s := g.m, g.m.Session
	g.plan()
	if err := g.each(func(p *route.Pair, lanes []*Lane) error {
		if err := g.makePair(p, lanes); err != nil {
			return err
		}
		return describeLanes(lanes, false)
	}); err != nil {
		return err
	}
	s.Tell(&wire.Further{Header: m.Header(), Keys: g.ringKeys(), Lanes: endsOf(g.lanes)})
	answer, err := await(g, v.further.answers)
	if err != nil {
		return err
	}
	if len(answer.Lanes) == 0 {
		return fmt.Errorf("the peer refuses: %s", answer.Reason)
	}
	ready := wire.Join{Header: m.Header()}
	if err = g.learn(answer.Keys, answer.Lanes, "the peer refuses: "+answer.Reason); err == nil {
		err = g.each(func(p *route.Pair, lanes []*Lane) error {
			if err := g.connectPair(lanes); err != nil {
				return err
			}
			return g.provePair(p, lanes)
		})
	}
	if err == nil {
		ready.Pairs = g.pairs()
	}
	s.Tell(&ready) // even if none is left: the peer waits
	if err != nil {
		return err
	}
	joined, err := await(g, v.further.joined)
	if err != nil {
		return err
	}
	if err := g.keep(joined.Pairs, fmt.Errorf("the peer leaves it out: %s", joined.Reason)); err != nil {
		return err
	}
	_, err = g.join(joined.From)
	return err
}

// acceptFurther is the listening side's part, but for the last message to the
// peer, nil for none: its host may close when it has that.
func (v *Carrier) acceptFurther(g *growth, offer *wire.Further) (last session.Frame, err error) {
	m, s := g.m, g.m.Session
	answer := wire.FurtherAnswer{Header: m.Header()}
	refuse := func(err error) (session.Frame, error) {
		answer.Reason = report.Reason(err)
		return &answer, err
	}
	if !v.further.begin() {
		return refuse(errors.New("they have been offered before"))
	}
	g.plan()
	if err := g.learn(offer.Keys, offer.Lanes, "not offered"); err != nil {
		return refuse(err)
	}
	if err := g.each(func(p *route.Pair, lanes []*Lane) error {
		if err := g.makePair(p, lanes); err != nil {
			return err
		}
		if err := g.connectPair(lanes); err != nil {
			return err
		}
		return describeLanes(lanes, true)
	}); err != nil {
		return refuse(err)
	}
	answer.Reason, answer.Keys, answer.Lanes = strings.Join(g.lost, "; "), g.ringKeys(), endsOf(g.lanes)
	s.Tell(&answer)
	ready, err := await(g, v.further.joins)
	if err != nil {
		return nil, err
	}
	joined := wire.Joined{Header: m.Header()}
	if err = g.keep(ready.Pairs, errors.New("the connecting side leaves it out")); err == nil {
		err = g.each(g.provePair)
	}
	if err == nil {
		joined.Pairs = g.pairs()
		joined.From, err = g.join(0)
	}
	if joined.Reason = strings.Join(g.lost, "; "); err != nil {
		joined.Pairs, joined.From, joined.Reason = 0, 0, report.Reason(err)
	}
	return &joined, err
}

// await waits for the peer's next message about a growth.
func await[M any](g *growth, from chan *M) (*M, error) {
	g.asked = time.Now()
	select {
	case x := <-from:
		return x, nil
	case <-g.m.Over:
		return nil, errOver
	case <-g.ctx.Done():
		return nil, fmt.Errorf("no answer from the peer: %w", context.Cause(g.ctx))
	}
}
