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

// mrs gives out the entries of the C table of registered memory.
var mrs struct {
	mu   sync.Mutex // protects the fields below and every entry's content
	used uint32     // entries above were never used
	free []uint32
}

// RegisterMR makes [addr, addr+length) usable by comms of the device and returns its handle.
func RegisterMR(device uint32, addr uintptr, length uint64, kind uint32, cookie uint64) (uintptr, error) {
	return RegisterMappedMR(device, addr, addr, length, kind, cookie)
}

// RegisterMappedMR is RegisterMR for memory that the host names by addr and this process reaches at base.
func RegisterMappedMR(device uint32, addr, base uintptr, length uint64, kind uint32, cookie uint64) (uintptr, error) {
	if end := uint64(addr) + length; end < length || uint64(base)+length < length {
		return 0, fmt.Errorf("fastpath: register %#x+%d: the range wraps around", uint64(addr), length)
	}
	mrs.mu.Lock()
	defer mrs.mu.Unlock()
	index := mrs.used
	if n := len(mrs.free); n > 0 {
		index = mrs.free[n-1]
	}
	mr, err := C.wf_mr_at(C.uint32_t(index))
	if mr == nil {
		return 0, fmt.Errorf("fastpath: register %#x+%d: no room for registration %d: %w", uint64(addr), length, index, err)
	}
	if n := len(mrs.free); n > 0 {
		mrs.free = mrs.free[:n-1]
	} else {
		mrs.used++
	}
	mr.device, mr.kind = C.uint32_t(device), C.uint32_t(kind)
	mr.addr, mr.base, mr.length = C.uint64_t(addr), C.uint64_t(base), C.uint64_t(length)
	mr.cookie, mr.user = C.uint64_t(cookie), 0
	return uintptr(C.wf_mr_open(mr, C.uint32_t(index))), nil
}

// LookupMR returns the cookie of a live registration; the error is a *HandleError.
func LookupMR(handle uintptr) (cookie uint64, err error) {
	mrs.mu.Lock()
	defer mrs.mu.Unlock()
	mr := C.wf_mr_find(C.uint64_t(handle))
	if mr == nil {
		return 0, &HandleError{What: "memory handle", Value: handle}
	}
	return uint64(mr.cookie), nil
}

// DeregisterMR ends a registration. It holds every comm of the device that may have a request in that memory; those whose
// request is not finished fail with code and are returned. After it nothing reads or writes that memory.
func DeregisterMR(handle uintptr, code int32) ([]*Comm, error) {
	mrs.mu.Lock()
	mr := C.wf_mr_find(C.uint64_t(handle))
	if mr == nil {
		mrs.mu.Unlock()
		return nil, &HandleError{What: "memory handle", Value: handle}
	}
	device := uint32(mr.device)
	C.wf_mr_close(mr)
	mrs.mu.Unlock()

	C.wf_barrier()
	comms := users(mr, device)
	if err := holdAll(comms); err != nil {
		return nil, err // the entry is never used again: a stuck thread may still touch the memory
	}
	var failed []*Comm
	for _, c := range comms {
		if c.uses(uint64(handle)) && c.Fail(code) {
			failed = append(failed, c)
		}
	}
	releaseAll(comms)

	mrs.mu.Lock()
	mrs.free = append(mrs.free, uint32(handle)&wfSlotMask|(uint32(handle>>wfSlabShift)&wfSlabMask)<<16)
	mrs.mu.Unlock()
	return failed, nil
}

// uses reports whether a request that is not done lies in the registration. The gate is held.
func (c *Comm) uses(handle uint64) bool {
	for i := range atomic.LoadUint32(&c.view.slots) {
		r := &c.view.req[i]
		switch atomic.LoadUint32(&r.state) {
		case wfReqMatched, wfReqPosted:
			for e := range atomic.LoadUint32(&r.n) {
				if atomic.LoadUint64(&r.e[e%wfGroup].mr) == handle {
					return true
				}
			}
		}
	}
	return false
}
