package lanes

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs/qp"
)

// ID names the comm to the executor.
func (v *Carrier) ID() uint64 { return v.cookie }

// Slab is the comm's, to which the lanes are attached.
func (v *Carrier) Slab() (*fastpath.Comm, error) { return v.fp, nil }

// Open says which comm v carries; it fails if a fatal event came before.
func (v *Carrier) Open(c carrier.Comm) error {
	v.comm = c
	return v.shared.Watch.Carries(v, c)
}

// Fence ends all that the queue pairs have under way.
func (v *Carrier) Fence() {
	v.fenced.Store(true)
	v.stop.Do(func() {
		v.further.stop(v, errOver)
		for _, q := range v.queuePairs() {
			if err := q.Fence(); err != nil { // a device that is gone answers so, and touches nothing either
				v.Log.Info(report.Net, "%v", err)
			}
		}
	})
}

// queuePairs are those that live, but for lanes that the executor does not have yet.
func (v *Carrier) queuePairs() (all []*qp.QP) {
	v.life.Lock()
	defer v.life.Unlock()
	for _, l := range v.lanes {
		if l.QP != nil {
			all = append(all, l.QP)
		}
	}
	for _, p := range v.ports {
		if p.Flush != nil {
			all = append(all, p.Flush)
		}
	}
	return all
}

// Shut ends everything once it may, or leaves it to the pool. The last
// acknowledgements of a transfer that is over here may still have to be repeated
// to the peer, so the queue pairs live on until it has closed too, its session has
// ended or time is up.
func (v *Carrier) Shut(m *session.Member, busy bool) {
	if busy {
		v.Fence()
	}
	v.shared.Lingers(1)
	go func() {
		defer task.Rescue(v.Log, "close", task.Nobody)
		defer v.shared.Lingers(-1)
		if m != nil && !v.fenced.Load() {
			t := time.NewTimer(v.shared.Timeout)
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
	}()
}

// destroy ends what exists.
func (v *Carrier) destroy() {
	v.end.Do(func() {
		v.shared.Watch.Remove(v)
		v.further.close(v)
		_ = v.dismantle(nil) // it is said
	})
}

// dismantle ends what exists, in an order in which nothing is used after its
// end, but for what k has of it.
func (v *Carrier) dismantle(k *Kit) error {
	v.life.Lock()
	defer v.life.Unlock()
	err := v.stuck
	for _, p := range v.ports {
		if k == nil {
			err = errors.Join(err, v.unqueue(p, v.lanes))
		}
		err = errors.Join(err, p.unregister())
	}
	if v.slab != nil {
		v.slab.Close()
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
		report.Say(v.Log, err)
	}
	return err
}

// leavePort gives up a port whose objects are gone.
func (v *Carrier) leavePort(p *Port) (err error) {
	if p.pd != nil {
		err = p.pd.Release()
	}
	if p.Slot >= 0 {
		v.Device.Ports.Leave(p.Slot)
	}
	return err
}

// unqueue destroys the queue pairs of a port, of those that lanes have, and their
// completion queue.
func (v *Carrier) unqueue(p *Port, lanes []*Lane) (err error) {
	for _, l := range lanes {
		if l.port == p && l.QP != nil {
			err = errors.Join(err, l.QP.Close())
			l.QP = nil
		}
	}
	if p.Flush != nil {
		err = errors.Join(err, p.Flush.Close())
		p.Flush = nil
	}
	if p.CQ != nil {
		err = errors.Join(err, p.CQ.Close())
		p.CQ = nil
	}
	return err
}

// Drain takes in what has arrived.
func (v *Carrier) Drain() { v.drained() }

// drained also tells of a flush that failed: the host, whose call would have met
// that, finds nothing of it any more. nil: none.
func (v *Carrier) drained() *fastpath.Fault {
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead {
		return nil
	}
	read, err := v.fp.Drain()
	if err != nil {
		v.Log.Info(report.Net, "%v", err)
	}
	if read == nil {
		return nil
	}
	return &fastpath.Fault{Kind: fastpath.FaultCompletion, Errno: syscall.Errno(read.Status), Lane: read.Lane, Want: read.Work, Got: uint64(read.Vendor), Where: "completion"}
}

// leftEvery paces Left.
const leftEvery = time.Second

// Left ends what waits for a peer that has closed. What it sent has arrived, and
// a flush of that may be under way; an acknowledgement may still be repeated.
func (v *Carrier) Left() {
	c := v.comm
	go func() {
		defer task.Rescue(v.Log, "close", task.Nobody)
		for look := 0; !c.Over(); look++ {
			if f := v.drained(); f != nil {
				v.fp.Fail(c.Fault(f))
				return
			}
			if s := v.fp.Snapshot(); s.Incomplete > 0 || (v.Kind == fastpath.Send && s.Unsent > 0 && look > 0) { // a receiver's are flushes
				c.AbortedBy(session.ErrAborted(v.Peer, c.Verb(), "the peer closed the connection while %d receives and %d sends waited for it", s.Incomplete, s.Unsent).On(v.Device.Name))
				return
			}
			if v.Kind == fastpath.Send && look > 0 && !v.inFlight() { // no receive comes any more: a further isend must not wait
				v.forsaken.Store(true) // before it fails, for who looks at both meanwhile
				v.forsaken.Store(c.Forsaken(session.ErrAborted(v.Peer, c.Verb(), "the peer closed the connection").On(v.Device.Name)))
				return
			}
			time.Sleep(leftEvery)
		}
	}()
}

// inFlight reports whether a work request has not ended.
func (v *Carrier) inFlight() bool {
	return slices.ContainsFunc(v.fp.LaneStates(nil), func(s fastpath.LaneState) bool { return s.Posted != s.Completed })
}

// Explain puts what a queue pair met into words; other faults stay as they are.
func (v *Carrier) Explain(f *fastpath.Fault, err *report.Error) *report.Error {
	q, dev := v.met(f)
	switch f.Kind {
	case fastpath.FaultCompletion:
		c := qp.Completion{Status: uint32(f.Errno), Vendor: uint32(f.Got), QP: q, Work: workName(f.Want)}
		if q != nil {
			c.QPN = q.Number
		}
		err = c.Explain()
	case fastpath.FaultPost:
		err = qp.PostFailed(f.Where, dev, f.Errno, q)
	}
	if err.Dev == "" { // else the one of the comm's ports that it happened on
		err.On(v.Device.Name)
	}
	return err.With(v.Peer)
}

// met is the queue pair that a fault is about, nil for none, and its port's name:
// that of a lane, or a port's flush queue pair or completion queue.
func (v *Carrier) met(f *fastpath.Fault) (q *qp.QP, dev string) {
	v.life.Lock()
	defer v.life.Unlock()
	if lane := int(f.Lane); lane < len(v.lanes) {
		return v.lanes[lane].QP, v.lanes[lane].port.Device.Name
	}
	for _, p := range v.ports {
		switch {
		case p.Slot != int(f.Lane)-fastpath.FaultDevice:
		case f.Where == "ibv_poll_cq":
			return nil, p.Device.Name
		default:
			return p.Flush, p.Device.Name
		}
	}
	return nil, v.Device.Name
}

// workName says what a wr_id stands for: its upper four bits are the kind.
func workName(wrID uint64) string {
	switch wrID >> 60 {
	case 1, 5, 6:
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
