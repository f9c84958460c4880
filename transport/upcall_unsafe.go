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
	"weft/transport/fastpath"
	"weft/transport/task"
)

// lastCore speaks for faults that belong to no comm: a stale or foreign handle
// does not tell whose it was.
var lastCore atomic.Pointer[Core]

func upcalls() unsafe.Pointer { return unsafe.Pointer(C.weft_core_upcalls()) }

func installUpcalls(c *Core) {
	lastCore.Store(c)
	fastpath.SetDefaultUpcalls(upcalls())
}

//export weftCoreFault
func weftCoreFault(cookie C.uint64_t, f *C.struct_wf_fault) (code C.int) {
	defer func() {
		if r := recover(); r != nil {
			c := lastCore.Load()
			code = C.int(c.cfg.Code(task.Panicked(c.cfg.Log, "fault", "", r), newestABI))
		}
	}()
	c := lastCore.Load()
	ft := fault{
		kind: uint32(f.kind), errno: syscall.Errno(f.err), entry: uint32(f.entry), lane: uint32(f.lane),
		seq: uint64(f.seq), want: uint64(f.want), got: uint64(f.got), where: C.GoString(f.where), call: C.GoString(f.call),
	}
	if comm, ok := comms.Get(uint64(cookie)); ok {
		return C.int(comm.fault(&ft))
	}
	if ft.kind == faultEnded { // its comm is closed meanwhile
		return 0
	}
	err := ft.describe(ft.call, "", "")
	report.Say(c.cfg.Log, err)
	return C.int(c.cfg.Code(err, newestABI))
}

//export weftCoreWants
func weftCoreWants(cookie C.uint64_t) {
	defer func() {
		if r := recover(); r != nil {
			err := task.Panicked(lastCore.Load().cfg.Log, "iflush", "", r)
			if c, ok := comms.Get(uint64(cookie)); ok { // its flush would wait for ever
				c.fail(err)
			}
		}
	}()
	if c, ok := comms.Get(uint64(cookie)); ok {
		if v, is := c.carrier.(*verbsCarrier); is {
			v.flushWaits(c)
		}
	}
}

const (
	faultPeerClosed = C.WF_FAULT_PEER_CLOSED
	faultSocket     = C.WF_FAULT_SOCKET
	faultProtocol   = C.WF_FAULT_PROTOCOL
	faultTooLarge   = C.WF_FAULT_TOO_LARGE
	faultAhead      = C.WF_FAULT_AHEAD
	faultHandle     = C.WF_FAULT_HANDLE
	faultArgument   = C.WF_FAULT_ARGUMENT
	faultMR         = C.WF_FAULT_MR
	faultInternal   = C.WF_FAULT_INTERNAL
	faultCompletion = C.WF_FAULT_COMPLETION
	faultPost       = C.WF_FAULT_POST
	faultHeld       = C.WF_FAULT_HELD
	faultThreads    = C.WF_FAULT_THREADS
	faultNull       = C.WF_FAULT_NULL
	faultEnded      = C.WF_FAULT_ENDED

	deviceFault = C.WF_LANES // plus a device's slot, in place of a lane
)

// newestABI stands for the table where none is known; the codes of misuse are
// the same in all.
const newestABI = 12
