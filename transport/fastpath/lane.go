package fastpath

/*
#include "lane.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	_ "weft/headers"         // rebuild when a header changes
	_ "weft/transport/meter" // and whose functions are called
	_ "weft/transport/record"
)

// VerbsLane is one queue pair of a comm. Lane i lies on device i mod the number of devices.
type VerbsLane struct {
	QP, CQ                       uintptr // struct ibv_qp*, struct ibv_cq*
	Device, PeerDevice           int     // among the comm's devices on either side, from 0
	SendDepth, RecvDepth, Inline int     // as made
	RecvPosted                   int     // receives that an earlier comm's lane of the same number has left posted
	MaxMessage                   uint32  // bytes of one work request; 0: no limit
	Weight                       uint32  // its part of what the lanes carry, to begin with; 0: 1
}

// VerbsFlush is how data that came by a device is flushed: through a queue pair that is connected to itself, on the completion
// queue of the device's lanes.
type VerbsFlush struct {
	Needed bool
	QP, CQ uintptr // 0: it comes later, by AttachFlush
	Depth  int     // reads outstanding; 0: one
}

// VerbsPlan is how a comm uses its queue pairs.
type VerbsPlan struct {
	Lanes       []VerbsLane
	Width       int    // lanes that one group uses
	Measured    bool   // LaneRates are wanted of messages too that one lane carries
	StripeMin   uint32 // a group of at most as many bytes uses one
	ARThreshold uint32 // data above goes without immediate, which follows alone; 0: never
	Keys        []Keys // of Shared, per local device; some may have no lane
	Peer        uint64 // address of the peer's Shared
	PeerKeys    []uint32
	Flush       []VerbsFlush // per local device; the zero value: nothing is flushed there
	FlushAlways bool         // host memory too
}

// LaneState counts a lane's work requests, mod 2^32.
type LaneState struct{ Posted, Completed uint32 }

// Shared is the part of the slab that the peer writes into, and that is written from: it is registered with remote write,
// without relaxed ordering, before AttachVerbs, and released before Free.
func (c *Comm) Shared() (addr uintptr, size uint64) {
	ring := unsafe.Offsetof(c.view.ring)
	return uintptr(unsafe.Pointer(c.c)) + ring, uint64(unsafe.Offsetof(c.view.sink) + unsafe.Sizeof(c.view.sink) - ring)
}

// AttachVerbs makes queue pairs, in INIT or later, the lanes of c, before c is opened, and fills their receive queues.
func AttachVerbs(c *Comm, p *VerbsPlan) error { return attach(c, p, 0, 0) }

// ExtendVerbs adds lanes to an open comm: p is the plan that it has, but for them, their devices and Width. They carry groups
// from the one numbered from on. It returns the first group whose CTS has keys for every device of p. When it fails c keeps the
// lanes that it had.
func ExtendVerbs(c *Comm, p *VerbsPlan, from uint64) (keyed uint64, err error) {
	if err := c.Hold(); err != nil {
		return 0, err
	}
	defer c.Release()
	err = attach(c, p, int(atomic.LoadUint32(&c.view.nlanes)), from)
	return atomic.LoadUint64(&c.view.ctsOut), err
}

// AttachFlush gives an open comm the queue pair by which data of a device is flushed.
func AttachFlush(c *Comm, device int, f VerbsFlush) error {
	if err := c.Hold(); err != nil {
		return err
	}
	defer c.Release()
	if rc := syscall.Errno(C.wf_verbs_flush_by(c.c, C.uint32_t(device), C.uint64_t(f.QP), C.uint32_t(max(f.Depth, 1)))); rc != 0 {
		return fmt.Errorf("fastpath: attach a flush QP of device %d to %v: it is not open, needs none there, or has one", device, c)
	}
	return nil
}

// attach gives c the lanes of p from the one numbered first on.
func attach(c *Comm, p *VerbsPlan, first int, from uint64) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("fastpath: attach %d lanes to %v: %s", len(p.Lanes), c, fmt.Sprintf(format, a...))
	}
	devices := len(p.Keys)
	switch {
	case int(atomic.LoadUint32(&c.view.nlanes)) != first || len(p.Lanes) <= first:
		return bad("it has %d already", atomic.LoadUint32(&c.view.nlanes))
	case len(p.Lanes) < 1 || len(p.Lanes) > wfLanes:
		return bad("a comm has 1 to %d", wfLanes)
	case devices < 1 || devices > wfDevices || len(p.PeerKeys) < 1 || len(p.PeerKeys) > wfDevices:
		return bad("keys of %d devices here and %d there, 1 to %d are legal", devices, len(p.PeerKeys), wfDevices)
	case len(p.Flush) > devices:
		return bad("%d flush QPs for %d devices", len(p.Flush), devices)
	case p.Width < 1 || p.Width > len(p.Lanes):
		return bad("groups of %d lanes", p.Width)
	case p.Peer%8 != 0:
		return bad("the peer's ring at %#x is not aligned", p.Peer)
	}
	plan := C.struct_wf_verbs{
		peer: C.uint64_t(p.Peer), devices: C.uint32_t(devices),
		stripe_min: C.uint32_t(p.StripeMin), ar_threshold: C.uint32_t(p.ARThreshold), flush_depth: wfRequests, spare: wfLines,
		next: C.struct_wf_more{from: C.uint64_t(from), lanes: C.uint32_t(len(p.Lanes)), width: C.uint32_t(p.Width)},
	}
	if p.FlushAlways {
		plan.flush_always = 1
	}
	for i, l := range p.Lanes {
		switch {
		case l.QP == 0 || l.CQ == 0 || l.SendDepth < 1 || l.RecvPosted < 0 || l.RecvDepth < l.RecvPosted || l.Inline < 0 || l.Weight > MaxWeight:
			return bad("lane %d is %+v", i, l)
		case l.Device < 0 || l.Device >= devices || l.PeerDevice < 0 || l.PeerDevice >= len(p.PeerKeys):
			return bad("lane %d goes from device %d of %d to device %d of %d", i, l.Device, devices, l.PeerDevice, len(p.PeerKeys))
		case plan.device[l.Device].cq != 0 && plan.device[l.Device].cq != C.uint64_t(l.CQ):
			return bad("lane %d has another completion queue than its device", i)
		}
		plan.device[l.Device].cq = C.uint64_t(l.CQ)
		plan.qp[i] = C.struct_wf_qp{
			qp: C.uint64_t(l.QP), device: C.uint32_t(l.Device), peer_device: C.uint32_t(l.PeerDevice),
			depth: C.uint32_t(l.SendDepth), inline_size: C.uint32_t(l.Inline), most: C.uint32_t(l.MaxMessage),
		}
		if l.MaxMessage == 0 {
			plan.qp[i].most = wfSizeMax
		}
		if c.kind == Recv {
			plan.qp[i].due = C.uint32_t(l.RecvDepth - l.RecvPosted)
			plan.spare = min(plan.spare, C.uint32_t(max(l.RecvDepth-C.WF_BATCH, 0)))
		}
	}
	for i, f := range p.Flush {
		if !f.Needed {
			continue
		}
		plan.flushes |= 1 << i
		if f.QP == 0 {
			continue
		}
		if C.uint64_t(f.CQ) != plan.device[i].cq {
			return bad("the flush QP of device %d has another CQ than its lanes", i)
		}
		plan.device[i].flush = C.uint64_t(f.QP)
		plan.flush_depth = min(plan.flush_depth, C.uint32_t(max(f.Depth, 1)))
	}
	for i, k := range p.Keys {
		plan.device[i].lkey = C.uint32_t(k.LKey)
	}
	for i, k := range p.PeerKeys {
		plan.peer_key[i] = C.uint32_t(k)
	}
	switch rc := syscall.Errno(C.wf_verbs_attach(c.c, &plan)); rc {
	case 0:
	case syscall.ECANCELED:
		return bad("it is not open any more")
	default:
		return fmt.Errorf("fastpath: attach %d lanes to %v: ibv_post_recv: %w", len(p.Lanes), c, rc)
	}
	weights := make([]uint32, len(p.Lanes))
	for i := range weights {
		weights[i] = max(p.Lanes[i].Weight, 1)
	}
	c.weigh(weights, p.Measured)
	return nil
}

// ReceivesDue is how many receives of a closed comm's lane are not posted.
func ReceivesDue(c *Comm, lane int) int { return int(C.wf_verbs_due(c.c, C.uint32_t(lane))) }

// DetachVerbs takes the lanes off a closed comm, once none of its queue pairs lives.
func DetachVerbs(c *Comm) { C.wf_verbs_detach(c.c) }

// FailedRead is a flush that failed.
type FailedRead struct {
	Lane           uint32 // as in a fault
	Status, Vendor uint32 // of the completion
	Work           uint64 // its wr_id
}

// Drain takes in what has arrived, so that requests which are complete are reported so, whatever the caller does next. What
// failed is not reported, for the caller knows why lanes do; but read is a flush that did, nil if none.
func (c *Comm) Drain() (read *FailedRead, err error) {
	if err := c.Hold(); err != nil {
		return nil, err
	}
	defer c.Release()
	var f C.struct_wf_fault
	if C.wf_verbs_drain(c.c, &f) != 0 {
		read = &FailedRead{Lane: uint32(f.lane), Status: uint32(f.err), Vendor: uint32(f.got), Work: uint64(f.want)}
	}
	return read, nil
}

// LaneStates reads the lanes' counters, at any time, into dst.
func (c *Comm) LaneStates(dst []LaneState) []LaneState {
	dst = dst[:0]
	for i := range min(atomic.LoadUint32(&c.view.nlanes), wfLanes) {
		l := &c.view.lanes[i]
		done := atomic.LoadUint32(&l.completed) // before posted: never ahead of it
		dst = append(dst, LaneState{Posted: atomic.LoadUint32(&l.posted), Completed: done})
	}
	return dst
}

// MaxWeight is the largest weight of a lane.
const MaxWeight = 1<<16 - 1

// SetWeights says what part of a group each lane takes, where several share it, and how many of the others: its weight beside
// theirs. It may be called at any time; groups that have begun stay as they are. LaneRates are measured from then on.
func (c *Comm) SetWeights(weights []uint32) error {
	if n := atomic.LoadUint32(&c.view.nlanes); uint32(len(weights)) != n {
		return fmt.Errorf("fastpath: set %d weights of %v: it has %d lanes", len(weights), c, n)
	}
	for i, w := range weights {
		if w < 1 || w > MaxWeight {
			return fmt.Errorf("fastpath: set weight %d of lane %d of %v: 1 to %d are legal", w, i, c, MaxWeight)
		}
	}
	c.weigh(weights, true)
	return nil
}

// LaneRate is what a lane has done with groups that several lanes share, and with some of the messages that it carries alone,
// together with those before them, which count as if they were as large: bytes that are complete, and how long it had such
// bytes to move. Both only grow. What is not complete is in neither.
type LaneRate struct {
	Bytes uint64
	Busy  time.Duration
}

// LaneRates reads what the lanes have done, at any time, into dst.
func (c *Comm) LaneRates(dst []LaneRate) []LaneRate {
	dst = dst[:0]
	for i := range min(atomic.LoadUint32(&c.view.nlanes), wfLanes) {
		g := &c.view.gauge[i]
		dst = append(dst, LaneRate{Bytes: atomic.LoadUint64(&g.bytes), Busy: time.Duration(atomic.LoadUint64(&g.busy))})
	}
	return dst
}
