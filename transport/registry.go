package transport

import "sync"

// registry maps ids to what they name. Ids grow and are never given out twice,
// so a stale one finds nothing.
type registry[T any] struct {
	mu   sync.RWMutex
	byID map[uint64]T // protected by mu
	last uint64       // protected by mu
}

func newRegistry[T any](first uint64) *registry[T] {
	return &registry[T]{byID: map[uint64]T{}, last: first}
}

// add stores what make answers under a new id.
func (r *registry[T]) add(make func(id uint64) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	v := make(r.last)
	r.byID[r.last] = v
	return v
}

// reserve answers a new id, for put.
func (r *registry[T]) reserve() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return r.last
}

// put stores v under a reserved id.
func (r *registry[T]) put(id uint64, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = v
}

func (r *registry[T]) get(id uint64) (T, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, ok := r.byID[id]
	return v, ok
}

// take removes id and answers what it named: of two closers one gets it.
func (r *registry[T]) take(id uint64) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.byID[id]
	delete(r.byID, id)
	return v, ok
}

// A process has one of each, whatever number of cores: handles travel through
// the host, which does not say whose they are.
var (
	comms     = newRegistry[*Comm](0)
	mrs       = newRegistry[*memory](0)
	listeners = newRegistry[*Listener](listenerKind << 60)
)

// listenerKind keeps listen handles apart from the executor's, whose kinds are 1 to 4.
const listenerKind = 5
