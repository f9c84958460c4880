package comms

// unsafe and C here: the pointer to the const upcall table, and the fault that
// the executor passes.

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -fvisibility=hidden -I${SRCDIR}/..
#include "upcall.h"
*/
import "C"

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/task"
)

// lastHost speaks for faults that belong to no comm: a stale or foreign handle
// does not tell whose it was.
var lastHost atomic.Pointer[Host]

// Install has the executor tell the comms of its faults; h speaks for those that
// belong to none.
func Install(h *Host) {
	lastHost.Store(h)
	fastpath.SetUpcalls(unsafe.Pointer(C.weft_core_upcalls()))
}

//export weftCoreFault
func weftCoreFault(cookie C.uint64_t, f *C.struct_wf_fault) (code C.int) {
	defer func() {
		if r := recover(); r != nil {
			h := lastHost.Load()
			code = C.int(h.Code(task.Panicked(h.Log, "fault", "", r), h.Table))
		}
	}()
	h := lastHost.Load()
	ft := fastpath.Fault{
		Kind: fastpath.FaultKind(f.kind), Errno: syscall.Errno(f.err), Entry: uint32(f.entry), Lane: uint32(f.lane),
		Seq: uint64(f.seq), Want: uint64(f.want), Got: uint64(f.got), Where: C.GoString(f.where), Call: C.GoString(f.call),
	}
	if comm, ok := comms.Get(uint64(cookie)); ok {
		return C.int(comm.Fault(&ft))
	}
	if ft.Kind == fastpath.FaultEnded { // its comm is closed meanwhile
		return 0
	}
	err := describe(&ft, ft.Call, "", "")
	report.Say(h.Log, err)
	return C.int(h.Code(err, h.Table))
}

//export weftCoreWants
func weftCoreWants(cookie C.uint64_t) {
	defer func() {
		if r := recover(); r != nil {
			err := task.Panicked(lastHost.Load().Log, "wants", "", r)
			if c, ok := comms.Get(uint64(cookie)); ok { // a flush of it would wait for ever
				c.Fail(err)
			}
		}
	}()
	if c, ok := comms.Get(uint64(cookie)); ok {
		if w, is := c.carrier.(carrier.Wanting); is {
			w.Wants()
		}
	}
}
