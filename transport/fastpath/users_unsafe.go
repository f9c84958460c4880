package fastpath

/*
#include "fastpath.h"
*/
import "C"

import (
	"maps"
	"slices"
	"sync/atomic"
	"unsafe"
)

// Here unsafe is: the address of a slab, as a thread's record holds it, becomes the slab's view.

// users lists the comms, by index, that may have a request in a closed registration: its only user, or every comm of the
// device when several used it, and those that a thread is inside of, which may have looked it up before it was closed.
func users(mr *wfMr) []*Comm {
	found := map[uint32]*Comm{}
	C.wf_barrier()
	for i := 0; ; i++ {
		in := uintptr(C.wf_inside(C.uint32_t(i)))
		if in == 1 {
			break
		}
		if in != 0 {
			index := (*(**wfComm)(unsafe.Pointer(&in))).index // slabs stay slabs for ever
			found[index] = registry.find(index)
		}
	}
	device := atomic.LoadUint32(&mr.device)
	switch user := atomic.LoadUint32(&mr.user); user {
	case 0:
	case wfNone:
		return registry.onDevice(device)
	default:
		found[user-1] = registry.find(user - 1)
	}
	var comms []*Comm
	for _, index := range slices.Sorted(maps.Keys(found)) {
		if c := found[index]; c != nil && c.device == device {
			comms = append(comms, c)
		}
	}
	return comms
}
