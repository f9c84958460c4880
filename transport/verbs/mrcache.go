package verbs

import (
	"cmp"
	"slices"
	"sync"

	"weft/transport/rdma"
)

// span is a registered range, and for a DMA-BUF where it begins in the buffer.
type span struct{ start, end, offset uint64 }

// mrKey is all in which registrations of one range may differ. shift ties a
// DMA-BUF's addresses to its offsets.
type mrKey struct {
	access Access
	kind   rdma.MemKind
	strict bool
	dmabuf bool
	file   [2]uint64
	shift  uint64
}

type mrEntry struct {
	key  mrKey
	span span
	keys memoryKeys
	how  string
	refs int
}

// mrCache holds the registrations of a protection domain. Each list is sorted
// by start, longer ranges first, and stays so when an entry leaves.
type mrCache struct {
	sync.Mutex
	lists map[mrKey]*mrList // protected
}

type mrList struct {
	entries []*mrEntry
	reach   []uint64 // reach[i] is the largest end of entries[:i+1]: it bounds the search backwards
}

// find answers an entry that contains the range, or nil.
func (c *mrCache) find(key mrKey, s span) *mrEntry {
	l := c.lists[key]
	if l == nil {
		return nil
	}
	after, _ := slices.BinarySearchFunc(l.entries, s.start, func(e *mrEntry, start uint64) int {
		if e.span.start <= start {
			return -1
		}
		return 1
	})
	for i := after - 1; i >= 0 && l.reach[i] >= s.end; i-- {
		if l.entries[i].span.end >= s.end {
			return l.entries[i]
		}
	}
	return nil
}

func compareEntries(a, b *mrEntry) int {
	return cmp.Or(cmp.Compare(a.span.start, b.span.start), cmp.Compare(b.span.end, a.span.end))
}

func (c *mrCache) insert(e *mrEntry) {
	if c.lists == nil {
		c.lists = map[mrKey]*mrList{}
	}
	l := c.lists[e.key]
	if l == nil {
		l = new(mrList)
		c.lists[e.key] = l
	}
	at, _ := slices.BinarySearchFunc(l.entries, e, compareEntries)
	l.entries = slices.Insert(l.entries, at, e)
	l.measure(at)
}

func (c *mrCache) remove(e *mrEntry) {
	l := c.lists[e.key]
	at := slices.Index(l.entries, e)
	l.entries = slices.Delete(l.entries, at, at+1)
	l.measure(at)
	if len(l.entries) == 0 {
		delete(c.lists, e.key)
	}
}

// measure computes reach from an index on.
func (l *mrList) measure(from int) {
	l.reach = l.reach[:min(from, len(l.reach))]
	for i := from; i < len(l.entries); i++ {
		most := l.entries[i].span.end
		if i > 0 {
			most = max(most, l.reach[i-1])
		}
		l.reach = append(l.reach, most)
	}
}

func (c *mrCache) size() int {
	c.Lock()
	defer c.Unlock()
	n := 0
	for _, l := range c.lists {
		n += len(l.entries)
	}
	return n
}
