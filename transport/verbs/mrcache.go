package verbs

import (
	"sync"

	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
)

// span is a registered range, and for a DMA-BUF where it begins in the buffer.
type span struct{ start, end, offset uint64 }

// mrKey is all in which registrations may differ.
type mrKey struct {
	span
	access ibv.Access
	kind   rdma.MemKind
	strict bool
	dmabuf bool
	file   [2]uint64
}

// mrEntry is a registration that all uses of exactly its range share.
//
// A use of a part has one of its own: it may outlive the use of the whole, and
// then the host does as it likes with the rest. Its key must not reach that, nor
// may the rest, mapped anew, be taken to be registered still. Nor is a part of a
// page left over: whoever shares an entry has memory in each of its pages.
type mrEntry struct {
	key  mrKey
	keys ibv.MemoryKeys
	how  string
	refs int
}

// mrCache holds the registrations of a protection domain.
type mrCache struct {
	sync.Mutex
	entries map[mrKey]*mrEntry // protected
}

func (c *mrCache) size() int {
	c.Lock()
	defer c.Unlock()
	return len(c.entries)
}
