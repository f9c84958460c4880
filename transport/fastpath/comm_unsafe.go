package fastpath

/*
#include "fastpath.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The whole unsafe surface: the upcall table that the core passes, the slab that a lane's provider asks for, and the
// generated view of a slab.

// Options says what a new comm is.
type Options struct {
	Kind   Kind
	Device uint32
	Cookie uint64  // the core's name for the comm, given back in upcalls
	Cuts   bool    // a send larger than its receive is cut to it, not refused
	Events uintptr // the host's callback for net events, ncclProfilerCallback_t; 0: none
}

// New takes a slab. The host cannot see the comm before Open.
func New(o Options) (*Comm, error) {
	if o.Kind != Send && o.Kind != Recv {
		return nil, fmt.Errorf("fastpath: new comm: kind %d is neither Send nor Recv", o.Kind)
	}
	if rc := C.wf_process_init(); rc != 0 {
		return nil, fmt.Errorf("fastpath: new comm: the fork handler could not be installed: %w", syscall.Errno(rc))
	}
	c, err := C.wf_comm_new(C.uint32_t(o.Kind), C.uint32_t(o.Device), C.uint64_t(o.Cookie), upcalls.Load())
	if c == nil {
		return nil, fmt.Errorf("fastpath: new comm: no memory for slab %d: %w", C.wf_comm_count(), err)
	}
	view := (*wfComm)(unsafe.Pointer(c))
	if o.Cuts {
		atomic.StoreUint32(&view.cuts, 1)
	}
	events := uint64(C.wf_comm_hears(C.uint64_t(o.Events)))
	atomic.StoreUint64(&view.events, events)
	comm := &Comm{c: c, view: view, gen: view.gen, index: view.index, kind: o.Kind, device: o.Device, cookie: o.Cookie, events: events}
	registry.add(comm)
	return comm, nil
}

// upcalls is the table of every comm, and of faults that belong to none.
var upcalls atomic.Pointer[C.struct_wf_upcalls]

// SetUpcalls names that table (*C.struct_wf_upcalls), which is const.
func SetUpcalls(table unsafe.Pointer) {
	t := (*C.struct_wf_upcalls)(table)
	upcalls.Store(t)
	C.wf_set_default_upcalls(t)
}

// Slab is the comm's slab (*C.struct_wf_comm), for the provider of its lanes.
func (c *Comm) Slab() unsafe.Pointer { return unsafe.Pointer(c.c) }
