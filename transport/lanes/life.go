package lanes

import (
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/task"
)

// Fence ends all that the queue pairs have under way.
func (v *Carrier) Fence() {
	v.fenced.Store(true)
	v.stop.Do(func() {
		v.stopGrowth(errOver)
		for _, q := range v.queuePairs() {
			if err := q.Fence(); err != nil { // a device that is gone says so, and touches nothing either
				v.Log.Info(report.Net, "%v", err)
			}
		}
	})
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

// Drain takes in what has arrived.
func (v *Carrier) Drain() { v.drained() }

// drained drains, and returns the fault of a flush that failed, which the host's
// next call would have met otherwise; nil: none failed.
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
