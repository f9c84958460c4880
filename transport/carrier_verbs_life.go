package transport

import (
	"errors"
	"slices"
	"sync"
	"time"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
)

func (v *verbsCarrier) id() uint64 { return v.cookie }

// device is the port that carries: its keys are no other's.
func (v *verbsCarrier) device() uint32 { return uint32(v.pair.local.Index) }

func (v *verbsCarrier) open(c *Comm) error {
	c.fp = v.fp
	return nil
}

func (v *verbsCarrier) describe(via string) string {
	return v.pair.local.Name + via + ", " + v.line
}

func (v *verbsCarrier) memory(addr uintptr, size uint64, kind rdma.MemKind) (registration, error) {
	return v.register("regMr", size, kind, func() (*verbs.Buffer, error) { return verbs.NewBuffer(addr, size, kind) }, addr)
}

func (v *verbsCarrier) buffer(addr uintptr, size, offset uint64, fd int, kind rdma.MemKind) (registration, error) {
	return v.register("regMrDmaBuf", size, kind|rdma.MemDMABUF, func() (*verbs.Buffer, error) { return verbs.NewDMABuf(addr, size, offset, fd, kind) }, addr)
}

func (v *verbsCarrier) register(op string, size uint64, kind rdma.MemKind, name func() (*verbs.Buffer, error), addr uintptr) (registration, error) {
	local := v.pair.local
	if kind == rdma.MemCUDA|rdma.MemDMABUF {
		kind = rdma.MemDMABUF // the descriptor says all
	}
	if !local.Pointers.Has(kind) {
		return registration{}, rdma.Errorf(rdma.Usage, op, "%v takes %v memory, not %v", local.Name, local.Pointers, kind).On(v.dev.Name).
			Try("NCCL stages it through host memory when the device reports host pointers only")
	}
	r := registration{base: addr, keys: []fastpath.Keys{{}}}
	if size == 0 {
		return r, nil // nothing to reach
	}
	b, err := name()
	if err != nil {
		return registration{}, err
	}
	region, err := v.pd.Register(b, verbs.AccessData)
	if err != nil {
		b.Close()
		return registration{}, err
	}
	r.keys[0] = fastpath.Keys{LKey: region.LKey, RKey: region.RKey}
	r.release = func() {
		if err := region.Release(); err != nil {
			rdma.Say(v.ctx.opts.Log, err)
		}
		b.Close()
	}
	return r, nil
}

// fences are the carriers that are being stopped.
var fences struct {
	sync.Mutex
	all map[*verbsCarrier]struct{} // protected
}

// waitForFences returns when the comms that have failed so far touch no memory.
func waitForFences() {
	fences.Lock()
	var all []*verbsCarrier
	for v := range fences.all {
		all = append(all, v)
	}
	fences.Unlock()
	for _, v := range all {
		v.fence()
	}
}

func (v *verbsCarrier) fence() {
	v.fencing(true)
	defer v.fencing(false)
	v.stop.Do(func() {
		v.fenced.Store(true)
		for _, q := range v.queuePairs() {
			if err := q.Fence(); err != nil { // a device that is gone answers so, and touches nothing either
				v.ctx.opts.Log.Info(rdma.Net, "%v", err)
			}
		}
	})
}

func (v *verbsCarrier) fenceLater() {
	v.fencing(true)
	go func() {
		defer rescue(v.ctx.opts.Log, "fence", nobody)
		v.fence()
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

func (v *verbsCarrier) queuePairs() []*verbs.QP {
	all := append([]*verbs.QP(nil), v.lanes...)
	if v.flush != nil {
		all = append(all, v.flush)
	}
	return all
}

func (v *verbsCarrier) streams() (streamState, bool) { return streamState{}, false }
func (v *verbsCarrier) forget()                      {}

// shut destroys everything once it may. The last acknowledgements of a transfer
// that is over here may still have to be repeated to the peer, so the queue pairs
// live on until it has closed too, its session has ended or time is up.
func (v *verbsCarrier) shut(m *member, busy bool) {
	if busy {
		v.fence()
	}
	v.ctx.core.reaper.lingers(1)
	go func() {
		defer rescue(v.ctx.opts.Log, "close", nobody)
		if m != nil && !v.fenced.Load() {
			t := time.NewTimer(v.ctx.core.timeout)
			select {
			case <-m.over:
			case <-t.C:
			}
			t.Stop()
		}
		m.part()
		v.destroy()
		v.ctx.core.reaper.lingers(-1)
	}()
}

// destroy ends what exists, in an order in which nothing is used after its end.
func (v *verbsCarrier) destroy() {
	v.end.Do(func() {
		v.life.Lock()
		defer v.life.Unlock()
		v.dead = true
		err := v.unqueue()
		if v.ring != nil {
			err = errors.Join(err, v.ring.Release())
		}
		if v.shared != nil {
			v.shared.Close()
		}
		if v.fp != nil && err == nil { // what the device may still write to is never used again
			fastpath.DetachVerbs(v.fp)
			v.fp.Free()
		}
		if v.pd != nil {
			err = errors.Join(err, v.pd.Release())
		}
		if err != nil {
			rdma.Say(v.ctx.opts.Log, err)
		}
	})
}

// unqueue destroys queue pairs and their completion queue.
func (v *verbsCarrier) unqueue() (err error) {
	for _, q := range v.queuePairs() {
		err = errors.Join(err, q.Close())
	}
	v.lanes, v.flush = nil, nil
	if v.cq != nil {
		err = errors.Join(err, v.cq.Close())
		v.cq = nil
	}
	return err
}

// drain takes in what has arrived.
func (v *verbsCarrier) drain() {
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead {
		return
	}
	if err := v.fp.Drain(); err != nil {
		v.ctx.opts.Log.Info(rdma.Net, "%v", err)
	}
}

// left ends what waits for a peer that has closed. What it sent has arrived, and
// a flush of that may be under way; an acknowledgement may still be repeated.
func (v *verbsCarrier) left(c *Comm) {
	go func() {
		defer rescue(v.ctx.opts.Log, "close", nobody)
		for look := 0; !c.over(); look++ {
			v.drain()
			if s := v.fp.Snapshot(); s.Incomplete > 0 || (s.Unsent > 0 && look > 0) {
				c.lost(rdma.Errorf(rdma.Peer, c.verb(), "the peer closed the connection while %d receives and %d sends waited for it", s.Incomplete, s.Unsent).
					On(v.dev.Name).With(v.peer).Try("its process closed first; look at its log"))
				return
			}
			if c.kind == fastpath.Send && look > 0 && !v.inFlight() { // no receive comes any more: a further isend must not wait
				gone := rdma.Errorf(rdma.Peer, c.verb(), "the peer closed the connection").On(v.dev.Name).With(v.peer)
				c.note(gone)
				v.fp.Fail(c.code(gone))
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

// explain puts what a queue pair met into words; other faults stay as they are.
func (v *verbsCarrier) explain(f *fault, err *rdma.Error) *rdma.Error {
	var q *verbs.QP
	if int(f.lane) < len(v.lanes) {
		q = v.lanes[f.lane]
	}
	switch f.kind {
	case faultCompletion:
		c := verbs.Completion{Status: uint32(f.errno), Vendor: uint32(f.got), QP: q, Work: workName(f.want)}
		if q != nil {
			c.QPN = q.Number
		}
		err = c.Explain()
	case faultPost:
		err = verbs.PostFailed(f.where, v.pair.local.Name, f.errno, q)
	}
	return err.On(v.dev.Name).With(v.peer)
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
