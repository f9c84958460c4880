package collnet

import (
	"maps"
	"slices"
	"sync"

	"weft/internal/report"
)

// region is what the host has registered.
type region struct {
	address uintptr
	size    uint64
}

// regions are those of a comm, by the handle that the host holds.
type regions struct {
	self
	mu     sync.Mutex
	all    map[uintptr]*region // protected by mu, as all below
	local  uintptr             // handles given out where there are no links
	closed bool
}

// add keeps a registration and returns its handle: the link's, or a local one where there was no link to register on (0).
// False: the comm was closed.
func (r *regions) add(handle uintptr, g *region) (uintptr, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return handle, false
	}
	if handle == 0 {
		r.local++
		handle = r.local
	}
	if r.all == nil {
		r.all = map[uintptr]*region{}
	}
	r.all[handle] = g
	return handle, true
}

// remove forgets a registration; nil: there is none.
func (r *regions) remove(handle uintptr) *region {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.all[handle]
	delete(r.all, handle)
	return g
}

// close takes no more, and returns the handles of those that are left.
func (r *regions) close() []uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Collect(maps.Keys(r.all))
	r.all, r.closed = nil, true
	return left
}

// find is the registration in which memory of an operation must lie; nil: the memory is empty.
func (r *regions) find(op, what string, address uintptr, size int, handle uintptr) (*region, error) {
	if size == 0 {
		return nil, nil
	}
	r.mu.Lock()
	g := r.all[handle]
	r.mu.Unlock()
	if g == nil {
		return nil, r.errorf(report.Misuse, op, "%s: %#x is no registration of this comm", what, uint64(handle))
	}
	if address < g.address || uint64(address-g.address) > g.size || uint64(size) > g.size-uint64(address-g.address) {
		return nil, r.errorf(report.Misuse, op, "%s: %d bytes at %#x are not inside what was registered, %d bytes at %#x", what, size, uint64(address), g.size, uint64(g.address))
	}
	return g, nil
}
