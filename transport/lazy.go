package transport

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// A connect makes and proves one lane for each pair of ports, which is all that
// most messages need. The further ones that NCCL_IB_QPS_PER_CONNECTION asks for
// come when the comm is open, all at once, over the session:
//
//	connecting side          listening side
//	make    -- further -->   make, connect, hand to the executor
//	        <-- answer ---
//	connect, hand to the executor, which uses them from then on
//
// The watch of the connecting side says when. Whatever fails leaves the comm
// with the lanes that it has. A queue pair is in v.lanes as soon as it is there,
// so fences, events and the comm's end mean it too.

// growing is what a comm's further lanes are at.
type growing struct {
	begun   atomic.Bool // by either side; it is tried once
	answers chan *wire.FurtherAnswer
}

var errOver = errors.New("the connection ended meanwhile")

// lazy reports whether further lanes come later.
func (c *Core) lazy() bool { return c.cfg.Knobs.Text(knob.Lazy) != "off" }

// ripe reports once that it is time for the further lanes of v, which carries c.
func (v *verbsCarrier) ripe(c *Comm) bool {
	if v.first == len(v.lanes) || v.more.begun.Load() {
		return false
	}
	onDemand := v.ctx.core.cfg.Knobs.Text(knob.Lazy) == "demand"
	if onDemand && c.fp.Snapshot().Bytes <= uint64(v.tuning.stripeMin) {
		return false
	}
	return v.more.begun.CompareAndSwap(false, true)
}

// growLater is the connecting side's part, in the background.
func (v *verbsCarrier) growLater(s *session, c *Comm) {
	s.growth.led.add(v.ctx.opts.Log, func() {
		c.mu.Lock()
		m := c.member
		c.mu.Unlock()
		s.core.quiet(s.life)
		err := v.offerFurther(m)
		switch {
		case err == nil:
			v.ctx.opts.Log.Info(rdma.Net, "%v has %d lanes now", c, len(v.lanes))
		case !c.over() && s.life.Err() == nil:
			v.ctx.opts.Log.Info(rdma.Net, "%v goes on with %d of %d lanes: %v", c, v.first, len(v.lanes), err)
		}
	})
}

// quiet waits until no connection is being set up, but not for long: those that
// the host waits for come first.
func (c *Core) quiet(ctx context.Context) {
	const look = 2 * time.Millisecond
	for end := time.Now().Add(c.offerLimit()); ctx.Err() == nil && time.Now().Before(end); time.Sleep(look) {
		if len(c.outgoing.taken)+len(c.incoming.taken) == 0 {
			return
		}
	}
}

// offerFurther has the peer make its ends.
func (v *verbsCarrier) offerFurther(m *member) (err error) {
	s := m.session
	ctx, cancel := context.WithTimeout(s.life, s.core.timeout)
	defer cancel()
	lanes, err := v.makeFurther(ctx)
	defer func() {
		if err != nil {
			v.dropFurther()
		}
	}()
	if err != nil {
		return err
	}
	mine, err := v.describeLanes(v.first, lanes, nil)
	if err != nil {
		return err
	}
	s.tell(&wire.Further{Header: m.header(), Lanes: mine})
	var answer *wire.FurtherAnswer
	select {
	case answer = <-v.more.answers:
	case <-m.over:
		return errOver
	case <-ctx.Done():
		return fmt.Errorf("no answer from the peer: %w", context.Cause(ctx))
	}
	if answer.Reason != "" {
		return fmt.Errorf("the peer refuses: %s", answer.Reason)
	}
	if err := v.fits(answer.Lanes); err != nil {
		return err
	}
	if err := v.connectLanes(ctx, v.first, lanes, answer.Lanes); err != nil {
		return err
	}
	return v.useFurther(answer.Lanes)
}

// acceptFurther is the listening side's part.
func (v *verbsCarrier) acceptFurther(ctx context.Context, theirs []wire.QPEnd) (mine []wire.QPEnd, err error) {
	if err := v.fits(theirs); err != nil {
		return nil, err
	}
	if !v.more.begun.CompareAndSwap(false, true) {
		return nil, errors.New("they have been offered before")
	}
	lanes, err := v.makeFurther(ctx)
	defer func() {
		if err != nil {
			v.dropFurther()
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := v.connectLanes(ctx, v.first, lanes, theirs); err != nil {
		return nil, err
	}
	if mine, err = v.describeLanes(v.first, lanes, theirs); err != nil {
		return nil, err
	}
	return mine, v.useFurther(theirs)
}

// fits checks the peer's ends of the further lanes: they are all, and run as the
// first ones do.
func (v *verbsCarrier) fits(theirs []wire.QPEnd) error {
	if want := len(v.lanes) - v.first; len(theirs) != want || want == 0 {
		return fmt.Errorf("%d further lanes for %d: %w", len(theirs), want, wire.ErrMalformed)
	}
	for i := range theirs {
		e, known, p := &theirs[i], &v.theirs.lanes[i%v.first], v.pairOf(v.first+i)
		gid := verbsGID(e.GID)
		if e.Device != p.peerIndex || e.Peer != p.localIndex || e.Slot != known.Slot || gid.Addr != p.peerGID.Addr || gid.Type != p.peerGID.Type {
			return fmt.Errorf("lane %d runs from device %d (slot %d, GID %v) to %d: %w", v.first+i, e.Device, e.Slot, gid.Addr, e.Peer, wire.ErrMalformed)
		}
	}
	return nil
}

// makeFurther makes the queue pairs of the further lanes, in INIT.
func (v *verbsCarrier) makeFurther(ctx context.Context) ([]*verbs.QP, error) {
	leave, err := v.ctx.core.growing.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var lanes []*verbs.QP
	for i := v.first; i < len(v.lanes); i++ {
		q, err := v.makeLane(i)
		if err != nil {
			return nil, &pairError{v.pairOf(i), err}
		}
		lanes = append(lanes, q)
	}
	return lanes, nil
}

// makeLane makes one, unless the comm has been fenced or is over: nothing would
// end the lane then.
func (v *verbsCarrier) makeLane(i int) (*verbs.QP, error) {
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead || v.fenced.Load() {
		return nil, errOver
	}
	p := v.portOf(i)
	q, err := p.dev.NewQP(p.pd, v.config(p))
	if err != nil {
		return nil, err
	}
	v.lanes[i] = q
	most := 0 // completions
	for j, q := range v.lanes {
		if q != nil && v.portOf(j) == p {
			most += q.SendDepth + q.RecvDepth
		}
	}
	if v.flushes(p.dev) {
		most += flushDepth
	}
	if most > p.cq.Depth {
		return nil, fmt.Errorf("%s: a completion queue of %d cannot hold %d", p.dev.Name, p.cq.Depth, most)
	}
	return q, nil
}

// useFurther hands connected lanes to the executor.
func (v *verbsCarrier) useFurther(theirs []wire.QPEnd) error {
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead || v.fenced.Load() {
		return errOver
	}
	_, err := fastpath.ExtendVerbs(v.fp, v.plan(v.lanes, append(v.theirs.lanes[:v.first:v.first], theirs...)), 0)
	return err
}

// dropFurther ends the further lanes, which the executor does not have.
func (v *verbsCarrier) dropFurther() {
	v.life.Lock()
	defer v.life.Unlock()
	for i := v.first; i < len(v.lanes); i++ {
		if q := v.lanes[i]; q != nil {
			v.stuck = errors.Join(v.stuck, q.Close())
			v.lanes[i] = nil
		}
	}
}
