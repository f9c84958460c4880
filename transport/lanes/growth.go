package lanes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// growth is one side's making of a comm's further lanes. What it makes belongs to
// it until the executor gets it, and to the comm from then on. Nothing else changes
// v.ports and v.lanes.
type growth struct {
	v      *Carrier
	m      *session.Member
	ctx    context.Context
	cancel context.CancelCauseFunc
	ports  []*onPort // that the comm did not have
	lanes  []*lane   // in the order in which the executor gets them
	keys   []uint32  // of the peer's memory that is written into, by its slot
	lost   []string  // why pairs of ports were left out
	asked  time.Time // when the peer was last asked
}

// grow begins, unless the comm is over.
func (v *Carrier) grow(m *session.Member) (*growth, error) {
	g := &growth{v: v, m: m, asked: time.Now()}
	g.ctx, g.cancel = context.WithCancelCause(m.Session.Life)
	v.further.busy.Lock()
	v.life.Lock()
	ended := v.dead || v.fenced.Load()
	if !ended {
		v.further.now, g.keys = g.cancel, v.peerTarget.keys
	}
	v.life.Unlock()
	if ended {
		g.cancel(errOver)
		v.further.busy.Unlock()
		return nil, errOver
	}
	timer := time.AfterFunc(v.shared.Timeout, func() { g.cancel(context.DeadlineExceeded) })
	context.AfterFunc(g.ctx, func() { timer.Stop() })
	return g, nil
}

// release drops what the comm did not get.
func (g *growth) release() {
	v := g.v
	defer v.further.busy.Unlock()
	g.cancel(errOver)
	v.life.Lock()
	v.further.now = nil
	v.life.Unlock()
	g.drop(slices.Clone(g.lanes))
}

// plan enters the lanes that the comm still lacks.
func (g *growth) plan() {
	for _, at := range g.v.PairAt[len(g.v.lanes):] {
		g.lanes = append(g.lanes, &lane{pair: &g.v.Pairs[at]})
	}
}

// each does a step for the lanes of each pair of ports, and leaves out the pairs
// for which it fails. It fails when none is left.
func (g *growth) each(step func(p *route.Pair, lanes []*lane) error) error {
	leave, err := g.v.shared.Growing.Enter(g.ctx)
	if err != nil {
		return err
	}
	defer leave()
	for i := range g.v.Pairs {
		p := &g.v.Pairs[i]
		lanes := g.lanesOf(p)
		if len(lanes) == 0 {
			continue
		}
		began := time.Now()
		err := step(p, lanes)
		if g.ctx.Err() != nil {
			return context.Cause(g.ctx)
		}
		if err != nil {
			g.lose(p, time.Since(began), err)
		}
	}
	return g.some()
}

// lanesOf are the lanes of a pair.
func (g *growth) lanesOf(p *route.Pair) (lanes []*lane) {
	for _, l := range g.lanes {
		if l.pair == p {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// some fails when no lane is left.
func (g *growth) some() error {
	if len(g.lanes) > 0 {
		return nil
	}
	lost := g.lost
	g.lost = nil // they are in the error
	return errors.New(report.Few(lost, 8, "; "))
}

// lose leaves a pair out.
func (g *growth) lose(p *route.Pair, took time.Duration, why error) {
	g.lost = append(g.lost, fmt.Sprintf("%s to the peer's device %d: %v", p.Local.Name, p.PeerIndex, why))
	if !g.m.Session.Ports.Narrowed(p, why) { // else the next connection knows
		g.m.Session.Ports.Failed(p, took, why)
	}
	g.drop(g.lanesOf(p))
}

// drop ends lanes, and ports that no other lane needs.
func (g *growth) drop(lanes []*lane) {
	v := g.v
	g.lanes = slices.DeleteFunc(g.lanes, func(l *lane) bool { return slices.Contains(lanes, l) })
	var stuck error
	for _, l := range lanes {
		if l.qp != nil {
			stuck = errors.Join(stuck, l.qp.Close())
		}
	}
	g.ports = slices.DeleteFunc(g.ports, func(p *onPort) bool {
		if slices.ContainsFunc(g.lanes, func(l *lane) bool { return l.pair.Local == p.device }) {
			return false
		}
		v.dropLoop(p)
		err := p.unqueue(nil)
		err = errors.Join(err, p.unregister())
		stuck = errors.Join(stuck, err, v.leavePort(p))
		return true
	})
	v.life.Lock()
	defer v.life.Unlock()
	v.stuck = errors.Join(v.stuck, stuck)
}

// makePair makes the queue pairs of a pair's lanes, in INIT, and its local port
// if that is new: with it the host's memory is registered there.
func (g *growth) makePair(p *route.Pair, lanes []*lane) error {
	v := g.v
	if why := p.Local.Down(); why != "" {
		return errors.New(why)
	}
	if port := portOn(slices.Concat(v.ports, g.ports), p.Local); port != nil {
		return g.addTo(port, lanes)
	}
	port := &onPort{device: p.Local, gid: p.GID, slot: -1}
	g.ports = append(g.ports, port)
	for _, l := range lanes {
		l.port = port
	}
	var others []int // of lanes that come after these
	for _, at := range v.PairAt {
		if o := &v.Pairs[at]; o != p && o.Local == p.Local {
			others = append(others, at)
		}
	}
	if err := v.openPort(port); err != nil {
		return err
	}
	if err := v.makeQueues(port, lanes, others); err != nil {
		return err
	}
	if !v.flushes(port.device) {
		return nil
	}
	port.looped = true
	return v.makeLoop(port)
}

// addTo makes lanes on a port that has a completion queue.
func (g *growth) addTo(port *onPort, lanes []*lane) (err error) {
	v := g.v
	for _, l := range lanes {
		l.port = port
		if l.qp, err = qp.New(port.device, port.pd, v.config(port)); err != nil {
			return err
		}
	}
	most := bit(v.flushes(port.device)) * flushDepth // completions
	for _, l := range slices.Concat(v.lanes, g.lanes) {
		if l.port == port && l.qp != nil {
			most += l.qp.SendDepth + l.qp.RecvDepth
		}
	}
	if most > port.cq.Depth {
		return fmt.Errorf("%s: a completion queue of %d cannot hold %d", port.device.Name, port.cq.Depth, most)
	}
	return nil
}

// connectPair connects a pair's lanes with the peer's ends.
func (g *growth) connectPair(lanes []*lane) error {
	for _, l := range lanes {
		if err := g.v.connectLane(g.ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// proves reports whether this side is to make sure that a pair that is new to the comm carries packets. One side does: that
// to which its port is new, so that nobody else polls there; the connecting one if it is new to both.
func (g *growth) proves(p *route.Pair) (bool, error) {
	here, there := true, true // new
	for _, l := range g.v.lanes {
		if l.pair == p {
			return false, nil
		}
		here, there = here && l.pair.LocalIndex != p.LocalIndex, there && l.pair.PeerIndex != p.PeerIndex
	}
	if !here && !there {
		return false, errors.New("both of its ports carry the connection already, in other pairs")
	}
	return here && (!there || g.v.Kind == fastpath.Send), nil
}

// provePair makes sure that a pair carries packets, if that is this side's part.
func (g *growth) provePair(p *route.Pair, lanes []*lane) error {
	if mine, err := g.proves(p); !mine || err != nil {
		return err
	}
	return lanes[0].prove(g.ctx)
}

// learn takes in the peer's ends: for each pair all of them or none, and a pair of
// which it has none is left out. They must run as was agreed when the comm was made.
func (g *growth) learn(keys []uint32, theirs []wire.QPEnd, why string) error {
	v := g.v
	merged := slices.Clone(g.keys)
	for i, k := range keys {
		switch {
		case i >= len(merged):
			merged = append(merged, k)
		case merged[i] == 0:
			merged[i] = k
		case k != 0 && k != merged[i]:
			return fmt.Errorf("slot %d has another key than before: %w", i, wire.ErrMalformed)
		}
	}
	waiting := slices.Clone(g.lanes)
	for i := range theirs {
		e := &theirs[i]
		at := slices.IndexFunc(waiting, func(l *lane) bool { return l.pair.PeerIndex == e.Device && l.pair.LocalIndex == e.Peer })
		if at < 0 {
			return fmt.Errorf("%d further lanes, of which number %d runs from device %d to %d: %w", len(theirs), i, e.Device, e.Peer, wire.ErrMalformed)
		}
		l := waiting[at]
		if gid := route.FromWire(e.GID); gid.Addr != l.pair.PeerGID.Addr || gid.Type != l.pair.PeerGID.Type {
			return fmt.Errorf("further lane %d has GID %v, not %v: %w", i, gid.Addr, l.pair.PeerGID.Addr, wire.ErrMalformed)
		}
		for _, known := range slices.Concat(v.lanes, g.lanes) {
			if o := &known.theirs; o.QPN != 0 && (o.Device == e.Device) != (o.Slot == e.Slot) {
				return fmt.Errorf("further lane %d: device %d is in slot %d, device %d in %d: %w", i, e.Device, e.Slot, o.Device, o.Slot, wire.ErrMalformed)
			}
		}
		l.theirs = *e
		waiting = slices.Delete(waiting, at, at+1)
	}
	g.keys = merged
	missing := uint32(0)
	for _, l := range waiting {
		missing |= v.pairBit(l.pair)
	}
	for _, l := range waiting {
		if all := g.lanesOf(l.pair); len(all) > 0 && all[0].theirs.QPN != 0 {
			return fmt.Errorf("some further lanes between device %d and %d are missing: %w", l.pair.PeerIndex, l.pair.LocalIndex, wire.ErrMalformed)
		}
	}
	return g.keep(g.pairs()&^missing, errors.New(why))
}

// keep leaves out what is not among pairs, as the peer answered.
func (g *growth) keep(pairs uint32, why error) error {
	for i := range g.v.Pairs {
		if p := &g.v.Pairs[i]; pairs&g.v.pairBit(p) == 0 && len(g.lanesOf(p)) > 0 {
			g.lose(p, time.Since(g.asked), why)
		}
	}
	return g.some()
}

// pairs are those of the lanes.
func (g *growth) pairs() (all uint32) {
	for _, l := range g.lanes {
		all |= g.v.pairBit(l.pair)
	}
	return all
}

// ringKeys are the peer's keys for this side, by slot.
func (g *growth) ringKeys() []uint32 { return ringKeys(slices.Concat(g.v.ports, g.ports)) }

// join hands the lanes to the executor, for the groups from the given one on, and
// returns the first group for which the peer may use its ends: where a port is new
// here, earlier receives were announced without keys for it.
func (g *growth) join(from uint64) (uint64, error) {
	v := g.v
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead || v.fenced.Load() {
		return 0, errOver
	}
	if g.ctx.Err() != nil {
		return 0, context.Cause(g.ctx)
	}
	ports, lanes := slices.Concat(v.ports, g.ports), slices.Concat(v.lanes, g.lanes)
	v.routed(lanes) // before the executor tells of them
	keyed, err := fastpath.ExtendVerbs(v.fp, v.plan(ports, lanes, g.keys), from)
	if err != nil {
		v.routed(v.lanes)
		return 0, v.notAttached(g.lanes, err)
	}
	if len(g.ports) == 0 {
		keyed = 1 // every group's CTS has all keys: groups are numbered from 1
	}
	v.ports, v.lanes, v.peerTarget.keys = ports, lanes, g.keys
	g.ports, g.lanes = nil, nil
	return keyed, nil
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
