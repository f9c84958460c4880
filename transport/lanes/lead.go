package lanes

import (
	"fmt"

	"weft/internal/knob"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

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

// offerFurther has the peer make its ends.
func (v *Carrier) offerFurther(g *growth) error {
	m, s := g.m, g.m.Session
	g.plan()
	if err := g.each(func(p *route.Pair, lanes []*lane) error {
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
		err = g.each(func(p *route.Pair, lanes []*lane) error {
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
