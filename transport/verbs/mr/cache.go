package mr

import (
	"sync"

	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
)

// key is all in which registrations may differ.
type key struct {
	span
	access ibv.Access
	kind   rdma.MemKind
	strict bool
	dmabuf bool
	file   [2]uint64
}

// entry is a registration that all uses of exactly its range share.
//
// A use of a part has one of its own: it may outlive the use of the whole, and
// then the host does as it likes with the rest. Its key must not reach that, nor
// may the rest, mapped anew, be taken to be registered still. Nor is a part of a
// page left over: whoever shares an entry has memory in each of its pages.
type entry struct {
	key  key
	keys ibv.MemoryKeys
	how  string
	refs int
}

// cache holds the registrations of a protection domain.
type cache struct {
	sync.Mutex
	entries map[key]*entry // protected
}

func (c *cache) size() int {
	c.Lock()
	defer c.Unlock()
	return len(c.entries)
}
