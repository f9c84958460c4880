package transport

import (
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs"
)

func (v *verbsCarrier) ID() uint64 { return v.cookie }

func (v *verbsCarrier) Slab() (*fastpath.Comm, error) { return v.fp, nil }

func (v *verbsCarrier) Open(c carrier.Comm) error {
	v.comm = c
	return v.ctx.core.watch.Carries(v, c)
}

// fences are the carriers that are being stopped.
var fences struct {
	sync.Mutex
	all map[*verbsCarrier]struct{} // protected
}

// cutting is held by who has the executor end requests under way, until fences has
// the carrier: else another could find them ended, and memory in use still.
var cutting sync.Mutex

// waitForFences returns when the comms that have failed so far touch no memory.
func waitForFences() {
	fences.Lock()
	var all []*verbsCarrier
	for v := range fences.all {
		all = append(all, v)
	}
	fences.Unlock()
	for _, v := range all {
		v.Fence()
	}
}

func (v *verbsCarrier) Fence() {
	v.fencing(true)
	defer v.fencing(false)
	v.fenced.Store(true)
	v.stop.Do(func() {
		v.more.stop(v, errOver)
		for _, q := range v.queuePairs() {
			if err := q.Fence(); err != nil { // a device that is gone answers so, and touches nothing either
				v.ctx.opts.Log.Info(report.Net, "%v", err)
			}
		}
	})
}

func (v *verbsCarrier) FenceLater() {
	v.fenced.Store(true)
	v.fencing(true)
	go func() {
		defer task.Rescue(v.ctx.opts.Log, "fence", task.Nobody)
		v.Fence()
	}()
}

func (v *verbsCarrier) fencing(on bool) {
	fences.Lock()
	defer fences.Unlock()
	if !on {
		delete(fences.all, v)
		return
	}
	if fences.all == nil {
		fences.all = map[*verbsCarrier]struct{}{}
	}
	fences.all[v] = struct{}{}
}

// queuePairs are those that live, but for lanes that the executor does not have yet.
func (v *verbsCarrier) queuePairs() (all []*verbs.QP) {
	v.life.Lock()
	defer v.life.Unlock()
	for _, l := range v.lanes {
		if l.qp != nil {
			all = append(all, l.qp)
		}
	}
	for _, p := range v.ports {
		if p.flush != nil {
			all = append(all, p.flush)
		}
	}
	return all
}

// Shut ends everything once it may, or leaves it to the pool. The last
// acknowledgements of a transfer that is over here may still have to be repeated
// to the peer, so the queue pairs live on until it has closed too, its session has
// ended or time is up.
func (v *verbsCarrier) Shut(m *session.Member, busy bool) {
	if busy {
		v.Fence()
	}
	v.ctx.core.reaper.Lingers(1)
	go func() {
		defer task.Rescue(v.ctx.opts.Log, "close", task.Nobody)
		if m != nil && !v.fenced.Load() {
			t := time.NewTimer(v.ctx.core.timeout)
			select {
			case <-m.Over:
			case <-t.C:
			}
			t.Stop()
		}
		parked := v.park(m)
		m.Part()
		if !parked {
			v.destroy()
		}
		v.ctx.core.reaper.Lingers(-1)
	}()
}

// destroy ends what exists.
func (v *verbsCarrier) destroy() {
	v.end.Do(func() {
		v.ctx.core.watch.Remove(v)
		v.more.over(v)
		_ = v.dismantle(nil) // it is said
	})
}

// dismantle ends what exists, in an order in which nothing is used after its
// end, but for what k has of it.
func (v *verbsCarrier) dismantle(k *kit) error {
	v.life.Lock()
	defer v.life.Unlock()
	err := v.stuck
	for _, p := range v.ports {
		if k == nil {
			err = errors.Join(err, v.unqueue(p, v.lanes))
		}
		err = errors.Join(err, p.unregister())
	}
	if v.shared != nil {
		v.shared.Close()
	}
	if v.fp != nil && err == nil { // what the device may still write to is never used again
		fastpath.DetachVerbs(v.fp)
		v.fp.Free()
	}
	for _, p := range v.ports {
		if k != nil {
			p.pd = nil
		}
		err = errors.Join(err, v.leavePort(p))
	}
	if err != nil {
		report.Say(v.ctx.opts.Log, err)
	}
	return err
}

// leavePort gives up a port whose objects are gone.
func (v *verbsCarrier) leavePort(p *verbsPort) (err error) {
	if p.pd != nil {
		err = p.pd.Release()
	}
	if p.slot >= 0 {
		v.dev.Ports.Leave(p.slot)
	}
	return err
}

// unqueue destroys the queue pairs of a port, of those that lanes have, and their
// completion queue.
func (v *verbsCarrier) unqueue(p *verbsPort, lanes []*verbsLane) (err error) {
	for _, l := range lanes {
		if l.port == p && l.qp != nil {
			err = errors.Join(err, l.qp.Close())
			l.qp = nil
		}
	}
	if p.flush != nil {
		err = errors.Join(err, p.flush.Close())
		p.flush = nil
	}
	if p.cq != nil {
		err = errors.Join(err, p.cq.Close())
		p.cq = nil
	}
	return err
}

// Drain takes in what has arrived.
func (v *verbsCarrier) Drain() { v.drained() }

// drained also tells of a flush that failed: the host, whose call would have met
// that, finds nothing of it any more. nil: none.
func (v *verbsCarrier) drained() *fastpath.Fault {
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead {
		return nil
	}
	read, err := v.fp.Drain()
	if err != nil {
		v.ctx.opts.Log.Info(report.Net, "%v", err)
	}
	if read == nil {
		return nil
	}
	return &fastpath.Fault{Kind: fastpath.FaultCompletion, Errno: syscall.Errno(read.Status), Lane: read.Lane, Want: read.Work, Got: uint64(read.Vendor), Where: "completion"}
}

// Left ends what waits for a peer that has closed. What it sent has arrived, and
// a flush of that may be under way; an acknowledgement may still be repeated.
func (v *verbsCarrier) Left() {
	c := v.comm
	go func() {
		defer task.Rescue(v.ctx.opts.Log, "close", task.Nobody)
		for look := 0; !c.Over(); look++ {
			if f := v.drained(); f != nil {
				v.fp.Fail(c.Fault(f))
				return
			}
			if s := v.fp.Snapshot(); s.Incomplete > 0 || (v.kind == fastpath.Send && s.Unsent > 0 && look > 0) { // a receiver's are flushes
				c.AbortedBy(session.ErrAborted(v.peer, c.Verb(), "the peer closed the connection while %d receives and %d sends waited for it", s.Incomplete, s.Unsent).On(v.dev.Name))
				return
			}
			if v.kind == fastpath.Send && look > 0 && !v.inFlight() { // no receive comes any more: a further isend must not wait
				v.forsaken.Store(true) // before it fails, for who looks at both meanwhile
				v.forsaken.Store(c.Forsaken(session.ErrAborted(v.peer, c.Verb(), "the peer closed the connection").On(v.dev.Name)))
				return
			}
			time.Sleep(watchEvery)
		}
	}()
}

// inFlight reports whether a work request has not ended.
func (v *verbsCarrier) inFlight() bool {
	return slices.ContainsFunc(v.fp.LaneStates(nil), func(s fastpath.LaneState) bool { return s.Posted != s.Completed })
}

// Explain puts what a queue pair met into words; other faults stay as they are.
func (v *verbsCarrier) Explain(f *fastpath.Fault, err *report.Error) *report.Error {
	q, dev := v.met(f)
	switch f.Kind {
	case fastpath.FaultCompletion:
		c := verbs.Completion{Status: uint32(f.Errno), Vendor: uint32(f.Got), QP: q, Work: workName(f.Want)}
		if q != nil {
			c.QPN = q.Number
		}
		err = c.Explain()
	case fastpath.FaultPost:
		err = verbs.PostFailed(f.Where, dev, f.Errno, q)
	}
	if err.Dev == "" { // else the one of the comm's ports that it happened on
		err.On(v.dev.Name)
	}
	return err.With(v.peer)
}

// met is the queue pair that a fault is about, nil for none, and its port's name:
// that of a lane, or a port's flush queue pair or completion queue.
func (v *verbsCarrier) met(f *fastpath.Fault) (q *verbs.QP, dev string) {
	v.life.Lock()
	defer v.life.Unlock()
	if lane := int(f.Lane); lane < len(v.lanes) {
		return v.lanes[lane].qp, v.lanes[lane].port.dev.Name
	}
	for _, p := range v.ports {
		switch {
		case p.slot != int(f.Lane)-fastpath.FaultDevice:
		case f.Where == "ibv_poll_cq":
			return nil, p.dev.Name
		default:
			return p.flush, p.dev.Name
		}
	}
	return nil, v.dev.Name
}

// workName says what a wr_id stands for: its upper four bits are the kind.
func workName(wrID uint64) string {
	switch wrID >> 60 {
	case 1, 5:
		return "a data write"
	case 2:
		return "a CTS"
	case 3:
		return "a flush read"
	case 4:
		return "a receive"
	}
	return "a request"
}
