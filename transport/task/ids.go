package task

import "sync"

// IDs maps ids to what they name. Ids grow and are never given out twice,
// so a stale one finds nothing.
type IDs[T any] struct {
	mu   sync.RWMutex
	byID map[uint64]T // protected by mu
	last uint64       // protected by mu
}

// NewIDs returns an empty map whose first id follows first.
func NewIDs[T any](first uint64) *IDs[T] {
	return &IDs[T]{byID: map[uint64]T{}, last: first}
}

// Add stores what make returns under a new id.
func (r *IDs[T]) Add(make func(id uint64) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	v := make(r.last)
	r.byID[r.last] = v
	return v
}

// Reserve returns a new id, for Put.
func (r *IDs[T]) Reserve() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return r.last
}

// Put stores v under a reserved id.
func (r *IDs[T]) Put(id uint64, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = v
}

// Get returns what an id names.
func (r *IDs[T]) Get(id uint64) (T, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, ok := r.byID[id]
	return v, ok
}

// Take removes id and returns what it named: of two closers one gets it.
func (r *IDs[T]) Take(id uint64) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.byID[id]
	delete(r.byID, id)
	return v, ok
}
