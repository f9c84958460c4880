package fastpath

/*
#include "fastpath.h"
*/
import "C"

import (
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Here unsafe is: entries of the C table of registrations become views, and words of the C side are written in place.

// mrAt returns an entry of the table of registrations, which grows to hold it.
func mrAt(index uint32) (*wfMr, error) {
	mr, err := C.wf_mr_at(C.uint32_t(index))
	if mr == nil {
		return nil, err
	}
	return (*wfMr)(unsafe.Pointer(mr)), nil
}

// ProgressWake tells threads that block in an old table's connect or accept, or rest between polls, that something changed.
func ProgressWake() {
	const futexWakePrivate = 1 | 128
	epoch := (*uint32)(unsafe.Pointer(&C.weft_progress_epoch))
	atomic.AddUint32(epoch, 1)
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(epoch)), futexWakePrivate, math.MaxInt32, 0, 0, 0)
}

// SetReaping says how many closed connections still drain; the exit of the process waits for 0, at most 2 s.
func SetReaping(n int) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&C.wf_reaping)), uint32(n))
}

// Exiting reports whether the process has called exit.
func Exiting() bool {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&C.wf_exiting))) != 0
}
