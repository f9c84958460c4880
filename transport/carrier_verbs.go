package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

const (
	laneDepth  = 256 // requests each way: a receiver's queue takes whatever its groups bring
	flushDepth = 32
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
	tuning  tuning
	stripes striping
	theirs  ends
	always  bool     // host memory is flushed too
	ece     wire.ECE // what both ends of lane 0 agreed on
	sl, tc  uint8

	stop   sync.Once // fence
	fenced atomic.Bool
	end    sync.Once // destroy
	life   sync.Mutex
	dead   bool  // protected by life: destroyed
	stuck  error // protected by life: a queue pair that could not be destroyed
}

// verbsPort is what a comm has on one local port.
type verbsPort struct {
	dev   *verbs.Device
	slot  int // among those that carry the asked device's comms
	pd    *verbs.PD
	ring  *verbs.Region // of shared
	cq    *verbs.CQ
	flush *verbs.QP  // loopback; nil: nothing that a flush must order
	loops chan error // how connecting it ended
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
	p := &verbsPort{dev: dev, slot: slot}
	v.ports = append(v.ports, p)
	if p.pd, err = dev.AcquirePD(); err != nil {
		return err
	}
	if p.ring, err = p.pd.Register(v.shared, verbs.AccessCTS); err != nil {
		return err
	}
	if err := v.queues(p); err != nil {
		return err
	}
	v.loop(p, gid)
	return nil
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
	lane := c.SendDepth + c.RecvDepth
	flushes, need := v.flushes(p.dev), 0
	for i := range v.lanes {
		if v.pairOf(i).local == p.dev {
			need += lane
		}
	}
	if flushes {
		need += flushDepth + 1
	}
	for {
		var err error
		if p.cq, err = p.pd.NewCQ(need); err != nil {
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
		if flushes {
			c.SendDepth, c.RecvDepth, c.Inline, c.Access, c.AnyOrder = flushDepth, 1, 0, verbs.RemoteRead, false
			if p.flush, err = p.dev.NewQP(p.pd, c); err != nil {
				return err
			}
			need += p.flush.SendDepth + p.flush.RecvDepth
		}
		if need <= p.cq.Depth {
			return nil
		}
		if err := v.unqueue(p); err != nil {
			return err
		}
	}
}

// flushing is what WEFT_FLUSH says, else NCCL's own variable.
func (c *Core) flushing() string {
	mode := c.cfg.Knobs.Text(knob.Flush)
	if mode == "" && c.cfg.Knobs.Int(knob.GDRFlushDisable) != 0 {
		return "never"
	}
	return mode
}

// flushes reports whether a receive through a port may have to be flushed to be seen.
func (v *verbsCarrier) flushes(dev *verbs.Device) bool {
	kinds, _ := dev.GPUMemory()
	return v.kind == fastpath.Recv && v.ctx.core.flushing() != "never" && (v.always || kinds != 0)
}

// loop connects a port's flush queue pair with itself, while the lanes are
// connected: looped tells how that ended.
func (v *verbsCarrier) loop(p *verbsPort, gid verbs.GID) {
	q := p.flush
	if q == nil {
		return
	}
	p.loops = make(chan error, 1)
	go func() {
		defer rescue(v.ctx.opts.Log, "connect", func(err error) { p.loops <- err })
		ctx, cancel := context.WithTimeout(context.Background(), v.ctx.core.offerLimit())
		defer cancel()
		p.loops <- q.Connect(ctx, verbs.Path{GID: gid, Peer: q.Local(gid)})
	}()
}

func (v *verbsCarrier) looped() error {
	for i := range v.pairs {
		p := v.portOn(v.pairs[i].local)
		if p.loops == nil {
			continue
		}
		err := <-p.loops
		p.loops = nil
		if err != nil {
			return &pairError{&v.pairs[i], err}
		}
	}
	return nil
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
