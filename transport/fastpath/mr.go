package fastpath

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// mrs gives out the entries of the C table of registered memory.
var mrs struct {
	mu   sync.Mutex // protects the fields below, and which registration an entry is
	used uint32     // entries above were never used
	free []uint32
}

// ErrWraps says that a range goes beyond the last address.
var ErrWraps = errors.New("the range wraps around")

// Keys name registered memory to one device.
type Keys struct{ LKey, RKey uint32 }

// MR is memory that comms of a device may use.
type MR struct {
	Device uint32  // of the comm
	Addr   uintptr // as the host names the first byte
	Base   uintptr // as it is registered, for queue pairs
	CPU    uintptr // as the CPU reaches it, for streams; 0: it does not
	Length uint64
	Kind   uint32 // pointer kind
	Cookie uint64 // the core's name for it
	Keys   []Keys // verbs: per port that carries comms of the device, at most 8
}

// RegisterMR makes memory usable by comms of its device and returns its handle. The error is ErrWraps, or a lack of memory.
func RegisterMR(m MR) (uintptr, error) {
	if end := uint64(m.Addr) + m.Length; end < m.Length || uint64(m.Base)+m.Length < m.Length || uint64(m.CPU)+m.Length < m.Length {
		return 0, fmt.Errorf("fastpath: register %#x+%d: %w", uint64(m.Addr), m.Length, ErrWraps)
	}
	if len(m.Keys) > wfDevices {
		return 0, fmt.Errorf("fastpath: register %#x+%d: keys of %d devices, at most %d", uint64(m.Addr), m.Length, len(m.Keys), wfDevices)
	}
	mrs.mu.Lock()
	defer mrs.mu.Unlock()
	index := mrs.used
	if n := len(mrs.free); n > 0 {
		index = mrs.free[n-1]
	}
	mr, err := mrAt(index)
	if err != nil {
		return 0, fmt.Errorf("fastpath: register %#x+%d: no room for registration %d: %w", uint64(m.Addr), m.Length, index, err)
	}
	if n := len(mrs.free); n > 0 {
		mrs.free = mrs.free[:n-1]
	} else {
		mrs.used++
	}
	atomic.StoreUint32(&mr.device, m.Device)
	atomic.StoreUint32(&mr.kind, m.Kind)
	atomic.StoreUint64(&mr.addr, uint64(m.Addr))
	atomic.StoreUint64(&mr.base, uint64(m.Base))
	atomic.StoreUint64(&mr.cpu, uint64(m.CPU))
	atomic.StoreUint64(&mr.length, m.Length)
	atomic.StoreUint64(&mr.cookie, m.Cookie)
	for i := range wfDevices {
		var k Keys
		if i < len(m.Keys) {
			k = m.Keys[i]
		}
		atomic.StoreUint32(&mr.key[i].lkey, k.LKey)
		atomic.StoreUint32(&mr.key[i].rkey, k.RKey)
	}
	atomic.StoreUint32(&mr.user, 0)
	gen := max(1, (atomic.LoadUint32(&mr.last)+1)&wfGenMask)
	atomic.StoreUint32(&mr.last, gen)
	atomic.StoreUint32(&mr.gen, gen) // from here on calls accept the handle
	return wfKindMr<<wfKindShift | uintptr(gen)<<wfGenShift | uintptr(index), nil
}

// SetKeys names a live registration to one more port, before any comm uses that port.
func SetKeys(handle uintptr, port int, k Keys) error {
	if port < 0 || port >= wfDevices {
		return fmt.Errorf("fastpath: keys of port %d, legal are 0 to %d", port, wfDevices-1)
	}
	mrs.mu.Lock()
	defer mrs.mu.Unlock()
	mr, _, err := liveMR(handle)
	if err != nil {
		return err
	}
	atomic.StoreUint32(&mr.key[port].lkey, k.LKey)
	atomic.StoreUint32(&mr.key[port].rkey, k.RKey)
	return nil
}

// liveMR finds the entry of a handle. The caller holds mrs.mu.
func liveMR(handle uintptr) (*wfMr, uint32, error) {
	index := uint64(handle) & (1<<wfGenShift - 1)
	if handle>>wfKindShift == wfKindMr && index < uint64(mrs.used) {
		mr, err := mrAt(uint32(index))
		if err == nil && atomic.LoadUint32(&mr.gen) == uint32(handle>>wfGenShift)&wfGenMask {
			return mr, uint32(index), nil
		}
	}
	return nil, 0, &HandleError{What: "memory handle", Value: handle}
}

// LookupMR returns the cookie of a live registration; the error is a *HandleError.
func LookupMR(handle uintptr) (cookie uint64, err error) {
	mrs.mu.Lock()
	defer mrs.mu.Unlock()
	mr, _, err := liveMR(handle)
	if err != nil {
		return 0, err
	}
	return atomic.LoadUint64(&mr.cookie), nil
}

// DeregisterMR ends a registration. It holds every comm of the device that may have a request in that memory; those whose
// request is not finished fail with code and are returned. After it nothing reads or writes that memory.
func DeregisterMR(handle uintptr, code int32) ([]*Comm, error) {
	mrs.mu.Lock()
	mr, index, err := liveMR(handle)
	if err != nil {
		mrs.mu.Unlock()
		return nil, err
	}
	atomic.StoreUint32(&mr.gen, 0)
	mrs.mu.Unlock()

	comms := users(mr)
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
	mrs.free = append(mrs.free, index)
	mrs.mu.Unlock()
	return failed, nil
}

// uses reports whether a request that is not over lies in the registration. The gate is held. A refused one is not, while a
// stream is in the middle of its bytes.
func (c *Comm) uses(handle uint64) bool {
	for i := range atomic.LoadUint32(&c.view.slots) {
		r := &c.view.req[i]
		switch atomic.LoadUint32(&r.state) {
		case wfReqRefused:
			if atomic.LoadUint32(&r.left) == 0 && atomic.LoadUint32(&r.parts) == 0 {
				continue
			}
		case wfReqMatched, wfReqPosted:
		default:
			continue
		}
		for e := range atomic.LoadUint32(&r.n) {
			if atomic.LoadUint64(&r.e[e%wfGroup].mr) == handle {
				return true
			}
		}
	}
	return false
}
