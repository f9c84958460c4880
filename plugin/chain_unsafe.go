package plugin

/*
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../headers
#include <stdlib.h>
#include "profile.h"
*/
import "C"

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/internal/report"
	"weft/transport/task"
)

var pollChain sync.Once

// poll tells hosts, ten times a second, what the profilers want by now: each has the
// address of its mask, and may be switched on and off by its user.
func poll() {
	defer task.Rescue(theProcess.log, "profiler", task.Nobody)
	for range time.Tick(time.Second / 10) {
		C.weft_chain_poll()
	}
}

// OpenProfiler loads a further profiler for a host that uses the given table. It
// stays loaded.
func (cHost) OpenProfiler(library string, table int) (name string, version int, err error) {
	clibrary := C.CString(library)
	defer C.free(unsafe.Pointer(clibrary))
	var cname *C.char
	var why [1024]C.char
	version = int(C.weft_chain_open(clibrary, C.int(table), &cname, &why[0], C.size_t(len(why))))
	if version == 0 {
		return "", 0, errors.New(C.GoString(&why[0]))
	}
	pollChain.Do(func() { go poll() })
	if cname == nil {
		return "without a name", version, nil
	}
	return C.GoString(cname), version, nil
}

// BeginChained is a communicator for the further profilers.
func (cHost) BeginChained(n uint16, mask int32, a *abi.ProfilerInitArgs) error {
	errno := C.weft_chain_begin(C.int(n), C.int(mask), C.int(hostsEvents(a.Table)), C.uint64_t(a.CommId), (*C.char)(unsafe.Pointer(a.CommName)),
		C.int(a.NNodes), C.int(a.Nranks), C.int(a.Rank), C.uintptr_t(a.Logfn))
	if errno != 0 {
		return report.Errorf(report.Host, "profiler.init", "room for communicator %d: %w", n, unix.Errno(errno))
	}
	return nil
}

// ChainForgotten are the events that had not ended when their places were needed.
func (cHost) ChainForgotten() uint64 { return uint64(C.weft_chain_forgotten()) }

// weft_chain_refused and weft_chain_ended are chain.c's, on the host's thread.
//
//export weft_chain_refused
func weft_chain_refused(which, result C.int, logger C.uintptr_t) {
	defer func() {
		if r := recover(); r != nil {
			recovered("profiler.init", r)
		}
	}()
	theProcess.profile.chain.refused(int(which), int32(result), uintptr(logger))
}

//export weft_chain_ended
func weft_chain_ended() {
	defer func() {
		if r := recover(); r != nil {
			recovered("profiler.finalize", r)
		}
	}()
	theProcess.profile.chain.finalized()
}
