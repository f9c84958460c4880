package lanes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/liveness"
	"weft/transport/rdma"
	"weft/transport/route"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

const (
	Depth      = 256 // requests each way: a receiver's queue takes whatever its groups bring
	proofLimit = time.Second
)

// Carrier moves bytes through queue pairs that the executor posts to. Its
// lanes run over one pair of ports, or over several in turn.
type Carrier struct {
	shared *Shared
	Options
	cookie uint64 // the executor's name for the comm
	fp     *fastpath.Comm
	comm   carrier.Comm // once it is open
	slab   *mr.Buffer   // ring and what is written from, in the slab

	ports      []*Port                       // local, distinct; protected by life once the comm is open, as the next
	lanes      []*Lane                       // those that the executor has, in its order
	routes     atomic.Pointer[[]*route.Pair] // theirs
	peerTarget target                        // its keys protected by life once the comm is open
	further    further
	loops      loops
	stripes    route.Shares
	always     bool           // host memory is flushed too
	ece        wire.ECE       // what both ends of lane 0 agreed on
	sl, tc     uint8          // as this side sends
	class      liveness.Class // as the sending side does

	stop     sync.Once // fence
	fenced   atomic.Bool
	forsaken atomic.Bool // it has failed only because the peer closed before
	end      sync.Once   // destroy
	life     sync.Mutex
	dead     bool  // protected by life: destroyed
	stuck    error // protected by life: something that could not be destroyed
}

// Port is what a comm has on one local port.
type Port struct {
	Device *port.Device
	gid    gid.GID
	Slot   int // among those that carry the asked device's comms
	pd     *mr.PD
	ring   *mr.Region // of the slab
	proof  *mr.Region // of the memory that proofs write from and to
	CQ     *qp.CQ
	Flush  *qp.QP // connected to itself; nil: none yet, or nothing is to be flushed. Protected by life
	Looped bool   // the executor has it, or gets it with the lanes. Protected by life
}

// Lane is a queue pair of a comm.
type Lane struct {
	QP     *qp.QP
	pair   *route.Pair
	port   *Port
	mine   wire.QPEnd // this end, as the peer knows it
	theirs wire.QPEnd
	Again  bool // an earlier comm has had it: it is connected
	Posted int  // receives that the earlier one has left
}

// Spread is how the lanes of a comm run over its pairs of ports: the index of
// each one's pair.
func Spread(pairs, lanes int) (at []int) {
	for i := range lanes {
		at = append(at, i%pairs)
	}
	return at
}

// Options are what is known of a comm that queue pairs are to carry.
type Options struct {
	carrier.For
	Pairs  []route.Pair // distinct
	PairAt []int        // by lane, of all that the comm is to have: index in pairs
	Tuning route.Tuning
}

// Carrier makes one side of a comm: slab, registered ring, completion queues and the
// first so many of its lanes, in INIT; lane i is to run over pairs[pairAt[i]].
// Unless again is nil these lanes are its. When it fails nothing is left, nor of
// again.
func (s *Shared) Carrier(o Options, first int, again *Kit) (*Carrier, error) {
	v := &Carrier{shared: s, Options: o, cookie: o.Reserve(), always: s.flushing() == "always"}
	v.further.init()
	if err := v.make(first, again); err != nil {
		v.Discard()
		return nil, err
	}
	s.Watch.Add(v)
	return v, nil
}

// routed says which pairs lanes run over that the executor is to have.
func (v *Carrier) routed(lanes []*Lane) {
	var all []*route.Pair
	for _, l := range lanes {
		all = append(all, l.pair)
	}
	v.routes.Store(&all)
}

// portOn is what the comm has on a port, among what it has on some; nil: nothing.
func portOn(ports []*Port, dev *port.Device) *Port {
	for _, p := range ports {
		if p.Device == dev {
			return p
		}
	}
	return nil
}

// owns reports whether a queue pair or a completion queue is one of the carrier's
// that the executor has.
func (v *Carrier) owns(q *qp.QP, cq *qp.CQ) bool {
	if q != nil && slices.Contains(v.queuePairs(), q) {
		return true
	}
	v.life.Lock()
	defer v.life.Unlock()
	return cq != nil && slices.ContainsFunc(v.ports, func(p *Port) bool { return p.CQ == cq })
}

func (v *Carrier) make(first int, again *Kit) (err error) {
	if again != nil {
		if err := v.adopt(again); err != nil {
			return err
		}
	}
	v.fp, err = fastpath.New(fastpath.Options{Kind: v.Kind, Device: uint32(v.Device.Index), Cookie: v.cookie, Cuts: v.Cuts, Events: v.NetEvents})
	if err != nil {
		return err
	}
	addr, size := v.fp.Shared()
	if v.slab, err = mr.NewBuffer(addr, size, rdma.MemHost); err != nil {
		return err
	}
	v.slab.Strict = true
	for _, p := range v.ports {
		if err = p.register(v.slab); err != nil {
			return err
		}
	}
	for _, at := range v.PairAt[len(v.lanes):first] {
		l := &Lane{pair: &v.Pairs[at]}
		if l.port = portOn(v.ports, l.pair.Local); l.port == nil {
			l.port = &Port{Device: l.pair.Local, gid: l.pair.GID, Slot: -1}
			v.ports = append(v.ports, l.port)
			if err := v.openPort(l.port); err != nil {
				return &PairError{l.pair, err}
			}
		}
		v.lanes = append(v.lanes, l)
	}
	v.routed(v.lanes)
	for _, p := range v.ports {
		if p.CQ != nil {
			continue
		}
		err := v.queues(p, v.lanes, v.PairAt[first:])
		if err == nil && !v.shared.Lazy() && v.flushes(p.Device) {
			p.Looped = true
			err = v.makeLoop(p)
		}
		if err != nil {
			return &PairError{v.pairBy(p), err}
		}
	}
	return nil
}

// pairBy is the first pair that begins at a port.
func (v *Carrier) pairBy(p *Port) *route.Pair {
	return &v.Pairs[slices.IndexFunc(v.Pairs, func(pair route.Pair) bool { return pair.Local == p.Device })]
}

// openPort makes what the comm has on a port, but for queues.
func (v *Carrier) openPort(p *Port) (err error) {
	if p.Slot, err = v.Device.Ports.Enter(p.Device); err != nil {
		p.Slot = -1
		return fmt.Errorf("%s: %w", p.Device.Name, err)
	}
	if p.pd, err = p.Device.AcquirePD(); err != nil {
		return err
	}
	return p.register(v.slab)
}

// register has the card take what the peer writes to.
func (p *Port) register(shared *mr.Buffer) (err error) {
	if p.ring, err = p.pd.Register(shared, ibv.AccessCTS); err == nil {
		p.proof, err = p.pd.Scratch()
	}
	return err
}

func (p *Port) unregister() (err error) {
	for _, r := range []*mr.Region{p.ring, p.proof} {
		if r != nil {
			err = errors.Join(err, r.Release())
		}
	}
	return err
}

// config is how every lane on a port is made.
func (v *Carrier) config(p *Port) qp.Config {
	c := qp.Config{SendCQ: p.CQ, RecvCQ: p.CQ, SendDepth: Depth, RecvDepth: Depth, Inline: v.Tuning.Inline, AnyOrder: v.Tuning.AnyOrder, Cookie: v.cookie}
	if v.Kind == fastpath.Send {
		c.RecvDepth = 1 // nothing comes by its queue
	}
	return c
}

// queues makes the completion queue of a port and the queue pairs of those of the
// lanes that run over it. The completion queue must hold all that queue pairs can
// have posted, those of later lanes too, which is known once they are made: then
// it may have to grow.
func (v *Carrier) queues(p *Port, lanes []*Lane, later []int) (err error) {
	c := v.config(p)
	each, count, flushes := c.SendDepth+c.RecvDepth, 0, 0
	for _, l := range lanes {
		count += bit(l.port == p)
	}
	for _, at := range later {
		count += bit(v.Pairs[at].Local == p.Device)
	}
	if v.flushes(p.Device) {
		flushes = flushDepth
	}
	for {
		if p.CQ, err = qp.NewCQ(p.pd, each*count+flushes); err != nil {
			return err
		}
		c := v.config(p)
		for _, l := range lanes {
			if l.port != p {
				continue
			}
			if l.QP, err = qp.New(p.Device, p.pd, c); err != nil {
				return err
			}
			each = l.QP.SendDepth + l.QP.RecvDepth
		}
		if each*count+flushes <= p.CQ.Depth {
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
func (v *Carrier) prove(ctx context.Context) error {
	proven := map[*route.Pair]bool{}
	for _, l := range v.lanes {
		if proven[l.pair] || l.Again { // which was settled
			continue
		}
		proven[l.pair] = true
		if err := v.proveLane(ctx, l); err != nil {
			return &PairError{l.pair, err}
		}
	}
	return v.shared.Watch.Doomed(v)
}

// proveLane asks a lane whose completion queue nobody else polls.
func (v *Carrier) proveLane(ctx context.Context, l *Lane) error {
	return qp.Prove(ctx, proofLimit, l.port.CQ, l.proof())
}

// proof is what shows which packets the lane carries.
func (l *Lane) proof() qp.Proof {
	return qp.Proof{QP: l.QP, From: l.port.proof, Addr: l.theirs.Scratch.Addr, RKey: l.theirs.Scratch.Key}
}

// Discard ends a carrier that no comm has.
func (v *Carrier) Discard() {
	if v.fp != nil {
		v.fp.Close()
	}
	v.destroy()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
