package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/liveness"
	"weft/transport/rdma"
	"weft/transport/route"
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
	dev    *device.Device // as the host asked
	kind   fastpath.Kind
	peer   string
	cookie uint64
	fp     *fastpath.Comm
	comm   carrier.Comm  // once it is open
	shared *verbs.Buffer // ring and what is written from, in the slab

	pairs   []route.Pair                  // distinct
	pairAt  []int                         // by lane, of all that the comm is to have: index in pairs
	ports   []*verbsPort                  // local, distinct; protected by life once the comm is open, as the next
	lanes   []*verbsLane                  // those that the executor has, in its order
	routes  atomic.Pointer[[]*route.Pair] // theirs
	peerEnd ends                          // its keys protected by life once the comm is open
	more    growing
	loops   loops
	tuning  route.Tuning
	stripes route.Shares
	always  bool           // host memory is flushed too
	ece     wire.ECE       // what both ends of lane 0 agreed on
	sl, tc  uint8          // as this side sends
	class   liveness.Class // as the sending side does

	stop     sync.Once // fence
	fenced   atomic.Bool
	forsaken atomic.Bool // it has failed only because the peer closed before
	end      sync.Once   // destroy
	life     sync.Mutex
	dead     bool  // protected by life: destroyed
	stuck    error // protected by life: something that could not be destroyed
}

// verbsPort is what a comm has on one local port.
type verbsPort struct {
	dev    *verbs.Device
	gid    verbs.GID
	slot   int // among those that carry the asked device's comms
	pd     *verbs.PD
	ring   *verbs.Region // of shared
	proof  *verbs.Region // of the memory that proofs write from and to
	cq     *verbs.CQ
	flush  *verbs.QP // connected to itself; nil: none yet, or nothing is to be flushed. Protected by life
	looped bool      // the executor has it, or gets it with the lanes. Protected by life
}

// verbsLane is a queue pair of a comm.
type verbsLane struct {
	qp     *verbs.QP
	pair   *route.Pair
	port   *verbsPort
	mine   wire.QPEnd // this end, as the peer knows it
	theirs wire.QPEnd
	again  bool // an earlier comm has had it: it is connected
	posted int  // receives that the earlier one has left
}

// lanesOver is how the lanes of a comm run over its pairs of ports: the index of
// each one's pair.
func lanesOver(pairs, lanes int) (at []int) {
	for i := range lanes {
		at = append(at, i%pairs)
	}
	return at
}

// openVerbs makes one side of a comm: slab, registered ring, completion queues
// and the first so many of its lanes, in INIT; lane i is to run over
// pairs[at[i]]. Unless again is nil these lanes are its. When it fails nothing is
// left, nor of again.
func openVerbs(x *Context, dev *device.Device, kind fastpath.Kind, peer string, pairs []route.Pair, at []int, first int, again *kit) (*verbsCarrier, error) {
	v := &verbsCarrier{ctx: x, dev: dev, kind: kind, peer: peer, pairs: pairs, pairAt: at, cookie: comms.Reserve()}
	v.more.init()
	v.tuning, v.always = x.tune(kind, pairs, len(at)), x.core.flushing() == "always"
	if err := v.make(first, again); err != nil {
		v.discard()
		return nil, err
	}
	x.core.watch.Add(v)
	return v, nil
}

// pairOf is the pair of ports that a lane of the executor's runs over.
func (v *verbsCarrier) pairOf(lane int) *route.Pair {
	all := *v.routes.Load()
	if lane < 0 || lane >= len(all) {
		lane = 0
	}
	return all[lane]
}

// routed says which pairs lanes run over that the executor is to have.
func (v *verbsCarrier) routed(lanes []*verbsLane) {
	var all []*route.Pair
	for _, l := range lanes {
		all = append(all, l.pair)
	}
	v.routes.Store(&all)
}

// portOn is what the comm has on a port, among what it has on some; nil: nothing.
func portOn(ports []*verbsPort, dev *verbs.Device) *verbsPort {
	for _, p := range ports {
		if p.dev == dev {
			return p
		}
	}
	return nil
}

// owns reports whether a queue pair or a completion queue is one of the carrier's
// that the executor has.
func (v *verbsCarrier) owns(q *verbs.QP, cq *verbs.CQ) bool {
	if q != nil && slices.Contains(v.queuePairs(), q) {
		return true
	}
	v.life.Lock()
	defer v.life.Unlock()
	return cq != nil && slices.ContainsFunc(v.ports, func(p *verbsPort) bool { return p.cq == cq })
}

func (v *verbsCarrier) make(first int, again *kit) (err error) {
	if again != nil {
		if err := v.adopt(again); err != nil {
			return err
		}
	}
	v.fp, err = fastpath.New(fastpath.Options{Kind: v.kind, Device: uint32(v.dev.Index), Cookie: v.cookie, Cuts: v.ctx.opts.Cuts})
	if err != nil {
		return err
	}
	addr, size := v.fp.Shared()
	if v.shared, err = verbs.NewBuffer(addr, size, rdma.MemHost); err != nil {
		return err
	}
	v.shared.Strict = true
	for _, p := range v.ports {
		if err = p.register(v.shared); err != nil {
			return err
		}
	}
	for _, at := range v.pairAt[len(v.lanes):first] {
		l := &verbsLane{pair: &v.pairs[at]}
		if l.port = portOn(v.ports, l.pair.Local); l.port == nil {
			l.port = &verbsPort{dev: l.pair.Local, gid: l.pair.GID, slot: -1}
			v.ports = append(v.ports, l.port)
			if err := v.openPort(l.port); err != nil {
				return &pairError{l.pair, err}
			}
		}
		v.lanes = append(v.lanes, l)
	}
	v.routed(v.lanes)
	for _, p := range v.ports {
		if p.cq != nil {
			continue
		}
		err := v.queues(p, v.lanes, v.pairAt[first:])
		if err == nil && !v.ctx.core.lazy() && v.flushes(p.dev) {
			p.looped = true
			err = v.makeLoop(p)
		}
		if err != nil {
			return &pairError{v.pairBy(p), err}
		}
	}
	return nil
}

// pairBy is the first pair that begins at a port.
func (v *verbsCarrier) pairBy(p *verbsPort) *route.Pair {
	return &v.pairs[slices.IndexFunc(v.pairs, func(pair route.Pair) bool { return pair.Local == p.dev })]
}

// openPort makes what the comm has on a port, but for queues.
func (v *verbsCarrier) openPort(p *verbsPort) (err error) {
	if p.slot, err = v.dev.Ports.Enter(p.dev); err != nil {
		p.slot = -1
		return fmt.Errorf("%s: %w", p.dev.Name, err)
	}
	if p.pd, err = p.dev.AcquirePD(); err != nil {
		return err
	}
	return p.register(v.shared)
}

// register has the card take what the peer writes to.
func (p *verbsPort) register(shared *verbs.Buffer) (err error) {
	if p.ring, err = p.pd.Register(shared, verbs.AccessCTS); err == nil {
		p.proof, err = p.pd.Scratch()
	}
	return err
}

func (p *verbsPort) unregister() (err error) {
	for _, r := range []*verbs.Region{p.ring, p.proof} {
		if r != nil {
			err = errors.Join(err, r.Release())
		}
	}
	return err
}

// config is how every lane on a port is made.
func (v *verbsCarrier) config(p *verbsPort) verbs.QPConfig {
	c := verbs.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, SendDepth: laneDepth, RecvDepth: laneDepth, Inline: v.tuning.Inline, AnyOrder: v.tuning.AnyOrder, Cookie: v.cookie}
	if v.kind == fastpath.Send {
		c.RecvDepth = 1 // nothing comes by its queue
	}
	return c
}

// queues makes the completion queue of a port and the queue pairs of those of the
// lanes that run over it. The completion queue must hold all that queue pairs can
// have posted, those of later lanes too, which is known once they are made: then
// it may have to grow.
func (v *verbsCarrier) queues(p *verbsPort, lanes []*verbsLane, later []int) (err error) {
	c := v.config(p)
	each, count, flushes := c.SendDepth+c.RecvDepth, 0, 0
	for _, l := range lanes {
		count += bit(l.port == p)
	}
	for _, at := range later {
		count += bit(v.pairs[at].Local == p.dev)
	}
	if v.flushes(p.dev) {
		flushes = flushDepth
	}
	for {
		if p.cq, err = p.pd.NewCQ(each*count + flushes); err != nil {
			return err
		}
		c := v.config(p)
		for _, l := range lanes {
			if l.port != p {
				continue
			}
			if l.qp, err = p.dev.NewQP(p.pd, c); err != nil {
				return err
			}
			each = l.qp.SendDepth + l.qp.RecvDepth
		}
		if each*count+flushes <= p.cq.Depth {
			break
		}
		if err := v.unqueue(p, lanes); err != nil {
			return err
		}
	}
	return nil
}

// prove makes sure that every pair of ports carries packets, of full size in the
// direction of the data. What comes back is small: acknowledgements and CTS.
func (v *verbsCarrier) prove(ctx context.Context) error {
	proven := map[*route.Pair]bool{}
	for _, l := range v.lanes {
		if proven[l.pair] || l.again { // which was settled
			continue
		}
		proven[l.pair] = true
		if err := v.proveLane(ctx, l); err != nil {
			return &pairError{l.pair, err}
		}
	}
	return v.ctx.core.watch.Doomed(v)
}

// proveLane asks a lane whose completion queue nobody else polls.
func (v *verbsCarrier) proveLane(ctx context.Context, l *verbsLane) error {
	return verbs.Prove(ctx, proofLimit, l.port.cq, l.proof())
}

// proof is what shows which packets the lane carries.
func (l *verbsLane) proof() verbs.Proof {
	return verbs.Proof{QP: l.qp, From: l.port.proof, Addr: l.theirs.Scratch.Addr, RKey: l.theirs.Scratch.Key}
}

// discard ends a carrier that no comm has.
func (v *verbsCarrier) discard() {
	if v.fp != nil {
		v.fp.Close()
	}
	v.destroy()
}
