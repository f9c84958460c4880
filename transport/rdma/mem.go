package rdma

import "strings"

// MemKind is a set of memory kinds, with the bits of NCCL's NCCL_PTR_*.
type MemKind int32

const (
	MemHost   MemKind = 1
	MemCUDA   MemKind = 2
	MemDMABUF MemKind = 4
)

// Has reports whether every kind of k is in the set.
func (m MemKind) Has(k MemKind) bool { return m&k == k }

func (m MemKind) String() string {
	var names []string
	for _, k := range []struct {
		bit  MemKind
		name string
	}{{MemHost, "host"}, {MemCUDA, "cuda"}, {MemDMABUF, "dmabuf"}} {
		if m.Has(k.bit) {
			names = append(names, k.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}
