package fastpath

/*
#include "fastpath.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Kind is the direction of a comm.
type Kind uint32

// The kinds of a comm.
const (
	Send Kind = wfKindSend
	Recv Kind = wfKindRecv
)

func (k Kind) String() string {
	switch k {
	case Send:
		return "send"
	case Recv:
		return "receive"
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// Comm is one direction of one connection: the Go side of a slab.
type Comm struct {
	c      *C.struct_wf_comm
	view   *wfComm // the same slab
	gen    uint32
	index  uint32
	kind   Kind
	device uint32
	cookie uint64
	events uint64     // the host's callback for net events, or one for the recorder alone
	gate   sync.Mutex // protects: the right to hold the slab's gate; goroutines order themselves here
}

// HandleError says that a value is not the handle of something alive.
type HandleError struct {
	What  string // what it should have been
	Value uintptr
}

func (e *HandleError) Error() string {
	return fmt.Sprintf("fastpath: %#x is not a live %s: it was closed, or is not weft's", uint64(e.Value), e.What)
}

func (c *Comm) String() string { return fmt.Sprintf("%s comm %d.%d", c.kind, c.index, c.gen) }

// Open makes the comm visible and returns the handle that the host holds. A comm opens once, after its lanes are attached:
// for one without lanes it returns 0.
func (c *Comm) Open() uintptr { return uintptr(C.wf_comm_open(c.c)) }

// Lookup finds an open comm by its handle; the error is a *HandleError.
func Lookup(handle uintptr) (*Comm, error) {
	if C.wf_comm_find(C.uint64_t(handle)) != nil {
		c := registry.find(uint32(handle>>wfSlabShift) & wfSlabMask)
		if c != nil && c.gen == uint32(handle>>wfGenShift)&wfGenMask {
			return c, nil
		}
	}
	return nil, &HandleError{What: "comm", Value: handle}
}

// Cookie is the core's name for the comm.
func (c *Comm) Cookie() uint64 { return c.cookie }

// Hear asks the host's profiler anew whether it wants net events, of a comm that has left it alone.
func (c *Comm) Hear() {
	registry.mu.RLock() // it is not freed meanwhile
	defer registry.mu.RUnlock()
	if registry.comms[c.index] == c && atomic.LoadUint64(&c.view.events) != c.events {
		atomic.StoreUint64(&c.view.events, c.events)
	}
}

// Coalesce says from now on, at any time, whether small sends over streams are done once they are copied, and leave together.
func (c *Comm) Coalesce(on bool) {
	var word uint32
	if on {
		word = 1
	}
	atomic.StoreUint32(&c.view.coalesce, word)
}

// Streak is how many small sends over streams in a row, one at a time, make the comm's lanes want their Go side.
func (c *Comm) Streak() uint32 { return atomic.LoadUint32(&c.view.streakMost) }

// SetStreak changes that, at any time.
func (c *Comm) SetStreak(sends uint32) { atomic.StoreUint32(&c.view.streakMost, sends) }

// Fail ends the comm: every later call on it returns code, but requests that are done are still reported done. The first
// code stays. It reports whether this call was the first.
func (c *Comm) Fail(code int32) bool {
	return C.wf_comm_fail(c.c, C.uint32_t(c.gen), C.int32_t(code)) != 0
}

// RefuseGroup ends the receives of group seq with code, because the sender refused it, and calls say before a call can return
// that code, unless it was refused here before. It reports false for a group that is complete, or not yet announced to the
// sender: that is left alone.
func (c *Comm) RefuseGroup(seq uint64, code int32, say func()) (bool, error) {
	if err := c.Hold(); err != nil {
		return false, err
	}
	defer c.Release()
	if atomic.LoadUint32(&c.view.gen) != c.gen || atomic.LoadUint32(&c.view.state) != wfCommOpen {
		return false, fmt.Errorf("fastpath: refuse group %d of %v: it is not open", seq, c)
	}
	refused := C.wf_comm_refuse(c.c, C.uint64_t(seq), C.int32_t(code))
	if refused == 1 {
		say()
	}
	return refused != 0, nil
}

// Close makes the handle and every request of the comm invalid. Its lanes stay as they are, for the reaper.
func (c *Comm) Close() error {
	if err := c.Hold(); err != nil {
		return err
	}
	defer c.Release()
	if state := atomic.LoadUint32(&c.view.state); state != wfCommOpen && state != wfCommNew {
		return fmt.Errorf("fastpath: close %v: it is closed already", c)
	}
	atomic.StoreUint64(&c.view.meter, 0)
	C.wf_comm_close(c.c)
	return nil
}

// Count has the comm's messages counted at a place (struct weft_meter_place), until Close. The host does not have the
// comm yet.
func (c *Comm) Count(place uintptr) { atomic.StoreUint64(&c.view.meter, uint64(place)) }

// Free gives the slab back, after Close and after the lanes are gone. The comm must not be used again.
func (c *Comm) Free() {
	if registry.remove(c) {
		C.wf_comm_free(c.c)
	}
}

// Stats is what a comm has done so far.
type Stats struct {
	Messages    uint64 // handed to the kernel, coalesced, or arrived in full
	Bytes       uint64
	Outstanding uint32 // requests whose end the host has not seen
	Unsent      uint32 // posted sends that are not wholly handed over, or which the kernel reads where they lie
	Incomplete  uint32 // posted groups of receives that are not complete
	Announced   uint64 // groups of receives whose CTS is wholly handed over
	Coalesced   uint32 // small sends that are done and have not left
	Code        int32  // what the comm failed with, or 0

	Uncopied  uint64 // bytes that the kernel has sent over TCP from where they lie
	Copies    bool   // it says that it has copied such bytes all the same
	NotPinned bool   // it could not pin the pages of some
}

// Snapshot reads the comm's counters; between two of them a call may have come.
func (c *Comm) Snapshot() Stats {
	return Stats{
		Messages:    atomic.LoadUint64(&c.view.messages),
		Bytes:       atomic.LoadUint64(&c.view.bytes),
		Outstanding: atomic.LoadUint32(&c.view.outstanding),
		Unsent:      atomic.LoadUint32(&c.view.unsent),
		Incomplete:  atomic.LoadUint32(&c.view.incomplete),
		Announced:   atomic.LoadUint64(&c.view.ctsOut) - 1,
		Coalesced:   atomic.LoadUint32(&c.view.coalesced),
		Code:        int32(uint32(atomic.LoadUint64(&c.view.error))),
		Uncopied:    atomic.LoadUint64(&c.view.uncopied),
		Copies:      atomic.LoadUint32(&c.view.zeroCopied)&wfZeroCopied != 0,
		NotPinned:   atomic.LoadUint32(&c.view.zeroCopied)&wfZeroNotPinned != 0,
	}
}
