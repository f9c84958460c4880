package transport

// unsafe and C here: the pointer to the const upcall table, and the fault that
// the executor passes.

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -fvisibility=hidden -I${SRCDIR}
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

// lastCore speaks for faults that belong to no comm: a stale or foreign handle
// does not tell whose it was.
var lastCore atomic.Pointer[Core]

func installUpcalls(c *Core) {
	lastCore.Store(c)
	fastpath.SetDefaultUpcalls(unsafe.Pointer(C.weft_core_upcalls()))
}

//export weftCoreFault
func weftCoreFault(cookie C.uint64_t, f *C.struct_wf_fault) (code C.int) {
	defer func() {
		if r := recover(); r != nil {
			c := lastCore.Load()
			code = C.int(c.cfg.Code(task.Panicked(c.cfg.Log, "fault", "", r), noTable))
		}
	}()
	c := lastCore.Load()
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
	report.Say(c.cfg.Log, err)
	return C.int(c.cfg.Code(err, noTable))
}

//export weftCoreWants
func weftCoreWants(cookie C.uint64_t) {
	defer func() {
		if r := recover(); r != nil {
			err := task.Panicked(lastCore.Load().cfg.Log, "iflush", "", r)
			if c, ok := comms.Get(uint64(cookie)); ok { // its flush would wait for ever
				c.Fail(err)
			}
		}
	}()
	if c, ok := comms.Get(uint64(cookie)); ok {
		if f, is := c.carrier.(carrier.Flushing); is {
			f.FlushWaits()
		}
	}
}

const noTable = 0 // of which a call is: not known here
