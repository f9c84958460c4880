package lanes

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/liveness"
	"weft/transport/memory"
	"weft/transport/route"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// Depth is how many requests a queue pair has each way: a receiver's takes whatever its groups bring.
const Depth = 256

// flushDepth is how many reads a port has under way.
const flushDepth = 32

// Options are what is known of a comm that queue pairs are to carry.
type Options struct {
	carrier.For
	Pairs  []route.Pair // distinct
	PairAt []int        // by lane, of all that the comm is to have: index in pairs
	Tuning route.Tuning
}

// Carrier moves bytes through queue pairs that the executor posts to. Its
// lanes run over one pair of ports, or over several in turn.
type Carrier struct {
	shared *Shared
	Options
	cookie uint64 // the executor's name for the comm
	fp     *fastpath.Comm
	comm   carrier.Comm   // once it is open
	slab   *memory.Buffer // ring and what is written from, in the slab

	ports      []*onPort                     // local, distinct; protected by life once the comm is open, as the next
	lanes      []*lane                       // those that the executor has, in its order
	routes     atomic.Pointer[[]*route.Pair] // theirs
	peerTarget target                        // its keys protected by life once the comm is open
	further    further
	loops      loops
	stripes    route.Shares
	always     bool           // host memory is flushed too
	ece        wire.ECE       // what both ends of lane 0 agreed on
	sl, tc     uint8          // as this side sends
	class      liveness.Class // as the sending side sends

	stop      sync.Once // fence
	fenced    atomic.Bool
	forsaken  atomic.Bool // it has failed only because the peer closed before
	destroyed sync.Once   // destroy
	life      sync.Mutex
	dead      bool  // protected by life: destroyed
	stuck     error // protected by life: something that could not be destroyed
}

// loops tells how far the making of the queue pairs for flushes has come.
type loops struct {
	sync.Mutex             // held while they are made
	begun      atomic.Bool // in the background
	wanted     atomic.Bool // by a flush
}

var errOver = errors.New("the connection ended meanwhile")

// ID names the comm to the executor.
func (v *Carrier) ID() uint64 { return v.cookie }

// Slab is the comm's, to which the lanes are attached.
func (v *Carrier) Slab() (*fastpath.Comm, error) { return v.fp, nil }

// routed notes the pairs of the lanes that the executor is to have.
func (v *Carrier) routed(lanes []*lane) {
	var all []*route.Pair
	for _, l := range lanes {
		all = append(all, l.pair)
	}
	v.routes.Store(&all)
}

// have is a copy of what v has now.
func (v *Carrier) have() queues {
	v.life.Lock()
	defer v.life.Unlock()
	q := queues{ece: v.ece}
	for _, p := range v.ports {
		q.ports = append(q.ports, &onPort{device: p.device, slot: p.slot, gid: p.gid, pd: p.pd, cq: p.cq, loop: p.loop, looped: p.looped})
	}
	for _, l := range v.lanes {
		copied := *l
		copied.port = portOn(q.ports, l.port.device)
		q.lanes = append(q.lanes, &copied)
	}
	return q
}

// owns reports whether a queue pair or a completion queue is one of the carrier's
// that the executor has.
func (v *Carrier) owns(q *qp.QP, cq *qp.CQ) bool {
	if q != nil && slices.Contains(v.queuePairs(), q) {
		return true
	}
	v.life.Lock()
	defer v.life.Unlock()
	return cq != nil && slices.ContainsFunc(v.ports, func(p *onPort) bool { return p.cq == cq })
}

// queuePairs are those that live, but for lanes that the executor does not have yet.
func (v *Carrier) queuePairs() (all []*qp.QP) {
	v.life.Lock()
	defer v.life.Unlock()
	for _, l := range v.lanes {
		if l.qp != nil {
			all = append(all, l.qp)
		}
	}
	for _, p := range v.ports {
		if p.loop != nil {
			all = append(all, p.loop)
		}
	}
	return all
}

// inFlight reports whether a work request has not ended.
func (v *Carrier) inFlight() bool {
	return slices.ContainsFunc(v.fp.LaneStates(nil), func(s fastpath.LaneState) bool { return s.Posted != s.Completed })
}

// pairBit stands for a pair in a message.
func (v *Carrier) pairBit(p *route.Pair) uint32 {
	for i := range v.Pairs {
		if &v.Pairs[i] == p {
			return 1 << i
		}
	}
	return 0
}

// target describes this side.
func (v *Carrier) target() target { return target{uint64(v.slab.Addr), ringKeys(v.ports)} }

// flushes reports whether a receive through a port may have to be flushed to be seen.
func (v *Carrier) flushes(dev *port.Device) bool {
	kinds, _ := dev.GPUMemory()
	return v.Kind == fastpath.Recv && v.shared.flushing() != "never" && (v.always || kinds != 0)
}

// openPort makes what the comm has on a port, but for queues.
func (v *Carrier) openPort(p *onPort) (err error) {
	if p.slot, err = v.Device.Ports.Enter(p.device); err != nil {
		p.slot = -1
		return fmt.Errorf("%s: %w", p.device.Name, err)
	}
	if p.pd, err = p.device.AcquirePD(); err != nil {
		return err
	}
	return p.register(v.slab)
}

// leavePort gives up a port whose objects are gone.
func (v *Carrier) leavePort(p *onPort) (err error) {
	if p.pd != nil {
		err = p.pd.Release()
	}
	if p.slot >= 0 {
		v.Device.Ports.Leave(p.slot)
	}
	return err
}

// config is how every lane on a port is made.
func (v *Carrier) config(p *onPort) qp.Config {
	c := qp.Config{SendCQ: p.cq, RecvCQ: p.cq, SendDepth: Depth, RecvDepth: Depth, Inline: v.Tuning.Inline, AnyOrder: v.Tuning.AnyOrder, Cookie: v.cookie}
	if v.Kind == fastpath.Send {
		c.RecvDepth = 1 // nothing comes by its queue
	}
	return c
}

// makeQueues makes the completion queue of a port and the queue pairs of those of the
// lanes that run over it. The completion queue must hold all that queue pairs can
// have posted, those of later lanes too. That is known only once they are made: then
// it may have to be made anew, larger.
func (v *Carrier) makeQueues(p *onPort, lanes []*lane, later []int) (err error) {
	c := v.config(p)
	each, count, flushes := c.SendDepth+c.RecvDepth, 0, 0
	for _, l := range lanes {
		count += bit(l.port == p)
	}
	for _, at := range later {
		count += bit(v.Pairs[at].Local == p.device)
	}
	if v.flushes(p.device) {
		flushes = flushDepth
	}
	for {
		if p.cq, err = qp.NewCQ(p.pd, each*count+flushes); err != nil {
			return err
		}
		c := v.config(p)
		for _, l := range lanes {
			if l.port != p {
				continue
			}
			if l.qp, err = qp.New(p.device, p.pd, c); err != nil {
				return err
			}
			each = l.qp.SendDepth + l.qp.RecvDepth
		}
		if each*count+flushes <= p.cq.Depth {
			break
		}
		if err := p.unqueue(lanes); err != nil {
			return err
		}
	}
	return nil
}

// stopGrowth has a growth end soon.
func (v *Carrier) stopGrowth(why error) {
	v.life.Lock()
	defer v.life.Unlock()
	if v.further.now != nil {
		v.further.now(why)
	}
}

// endGrowth ends growth for good, before v is destroyed, and waits for one that runs.
func (v *Carrier) endGrowth() {
	v.life.Lock()
	v.dead = true
	v.life.Unlock()
	v.stopGrowth(errOver)
	v.further.busy.Lock()
	defer v.further.busy.Unlock()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
