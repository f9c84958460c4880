package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

const (
	laneDepth  = 256 // requests each way: a receiver's queue takes whatever its groups bring
	proofLimit = time.Second
)

// verbsCarrier moves bytes through queue pairs that the executor posts to. Its
// lanes run over one pair of ports, or over several in turn.
type verbsCarrier struct {
	ctx    *Context
	dev    *Device // as the host asked
	kind   fastpath.Kind
	peer   string
	cookie uint64
	fp     *fastpath.Comm
	shared *verbs.Buffer // ring and what is written from, in the slab

	pairs   []verbsPair  // distinct
	ports   []*verbsPort // local, distinct
	lanes   []*verbs.QP  // protected by life from the first on that comes later
	first   int          // lanes that the comm begins with
	pairAt  []int        // by lane: index in pairs
	more    growing
	loops   loops
	tuning  tuning
	stripes striping
	theirs  ends
	always  bool     // host memory is flushed too
	ece     wire.ECE // what both ends of lane 0 agreed on
	sl, tc  uint8    // as this side sends
	class   class    // as the sending side does

	stop   sync.Once // fence
	fenced atomic.Bool
	end    sync.Once // destroy
	life   sync.Mutex
	dead   bool  // protected by life: destroyed
	stuck  error // protected by life: a queue pair that could not be destroyed
}

// verbsPort is what a comm has on one local port.
type verbsPort struct {
	dev    *verbs.Device
	gid    verbs.GID
	slot   int // among those that carry the asked device's comms
	pd     *verbs.PD
	ring   *verbs.Region // of shared
	cq     *verbs.CQ
	flush  *verbs.QP // connected to itself; nil: none yet, or nothing is to be flushed. Protected by life
	looped bool      // the executor has it, or gets it with the lanes. Protected by life
}

// openVerbs makes one side of a comm: slab, registered ring, completion queues
// and queue pairs in INIT; lane i runs over pairs[at[i]], and the last of them
// come later, so many. When it fails nothing is left.
func openVerbs(x *Context, dev *Device, kind fastpath.Kind, peer string, pairs []verbsPair, at []int, later int) (*verbsCarrier, error) {
	v := &verbsCarrier{ctx: x, dev: dev, kind: kind, peer: peer, pairs: pairs, pairAt: at, first: len(at) - later, cookie: comms.reserve()}
	v.more.answers = make(chan *wire.FurtherAnswer, 1)
	v.tuning, v.always = v.tune(), x.core.flushing() == "always"
	if err := v.make(); err != nil {
		v.discard()
		return nil, err
	}
	x.core.watch.add(v)
	return v, nil
}

// pairOf is the pair of ports that a lane runs over.
func (v *verbsCarrier) pairOf(lane int) *verbsPair {
	if lane < 0 || lane >= len(v.pairAt) {
		lane = 0
	}
	return &v.pairs[v.pairAt[lane]]
}

// portOf is what the comm has on a lane's local port.
func (v *verbsCarrier) portOf(lane int) *verbsPort { return v.portOn(v.pairOf(lane).local) }

func (v *verbsCarrier) portOn(dev *verbs.Device) *verbsPort {
	i := slices.IndexFunc(v.ports, func(p *verbsPort) bool { return p.dev == dev })
	if i < 0 {
		return nil
	}
	return v.ports[i]
}

// owns reports whether a queue pair or a completion queue is the carrier's.
func (v *verbsCarrier) owns(q *verbs.QP, cq *verbs.CQ) bool {
	return q != nil && slices.Contains(v.queuePairs(), q) ||
		cq != nil && slices.ContainsFunc(v.ports, func(p *verbsPort) bool { return p.cq == cq })
}

func (v *verbsCarrier) make() (err error) {
	v.fp, err = fastpath.New(fastpath.Options{Kind: v.kind, Device: uint32(v.dev.Index), Cookie: v.cookie, Upcalls: upcalls()})
	if err != nil {
		return err
	}
	addr, size := v.fp.Shared()
	if v.shared, err = verbs.NewBuffer(addr, size, rdma.MemHost); err != nil {
		return err
	}
	v.shared.Strict = true
	v.lanes = make([]*verbs.QP, len(v.pairAt))
	for i := range v.pairs {
		if v.portOn(v.pairs[i].local) != nil {
			continue
		}
		if err := v.makeOn(v.pairs[i].local, v.pairs[i].gid); err != nil {
			return &pairError{&v.pairs[i], err}
		}
	}
	return nil
}

// makeOn makes what the comm has on a port.
func (v *verbsCarrier) makeOn(dev *verbs.Device, gid verbs.GID) error {
	slot, err := v.dev.ports.enter(dev)
	if err != nil {
		return fmt.Errorf("%s: %w", dev.Name, err)
	}
	p := &verbsPort{dev: dev, gid: gid, slot: slot}
	v.ports = append(v.ports, p)
	if p.pd, err = dev.AcquirePD(); err != nil {
		return err
	}
	if p.ring, err = p.pd.Register(v.shared, verbs.AccessCTS); err != nil {
		return err
	}
	if err := v.queues(p); err != nil || v.ctx.core.lazy() || !v.flushes(dev) {
		return err
	}
	p.looped = true
	return v.makeLoop(p)
}

// config is how every lane on a port is made.
func (v *verbsCarrier) config(p *verbsPort) verbs.QPConfig {
	c := verbs.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, SendDepth: laneDepth, RecvDepth: laneDepth, Inline: v.tuning.inline, AnyOrder: v.tuning.anyOrder, Cookie: v.cookie}
	if v.kind == fastpath.Send {
		c.RecvDepth = 1 // nothing comes by its queue
	}
	return c
}

// queues makes the queue pairs of a port. Their completion queue must hold all
// that they can have posted, those that come later too, which is known once they
// are made: then it may have to grow.
func (v *verbsCarrier) queues(p *verbsPort) error {
	c := v.config(p)
	lane, flushes, need := c.SendDepth+c.RecvDepth, 0, 0
	if v.flushes(p.dev) {
		flushes = flushDepth
	}
	for i := range v.lanes {
		if v.pairOf(i).local == p.dev {
			need += lane
		}
	}
	for {
		var err error
		if p.cq, err = p.pd.NewCQ(need + flushes); err != nil {
			return err
		}
		c := v.config(p)
		need = 0
		for i := range v.lanes {
			if v.pairOf(i).local != p.dev {
				continue
			}
			if i < v.first {
				if v.lanes[i], err = p.dev.NewQP(p.pd, c); err != nil {
					return err
				}
				lane = v.lanes[i].SendDepth + v.lanes[i].RecvDepth
			}
			need += lane
		}
		if need+flushes <= p.cq.Depth {
			return nil
		}
		if err := v.unqueue(p); err != nil {
			return err
		}
	}
}

// prove makes sure that every pair of ports carries packets both ways.
func (v *verbsCarrier) prove(ctx context.Context) error {
	for i := range v.pairs {
		lane := slices.Index(v.pairAt, i)
		key := v.theirs.keys[v.theirs.lanes[lane].Slot]
		if err := v.lanes[lane].Prove(ctx, proofLimit, v.portOf(lane).cq, v.theirs.shared, key); err != nil {
			return &pairError{&v.pairs[i], err}
		}
	}
	return v.ctx.core.watch.doomed(v)
}

// discard ends a carrier that no comm has.
func (v *verbsCarrier) discard() {
	if v.fp != nil {
		v.fp.Close()
	}
	v.destroy()
}
