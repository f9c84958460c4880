package collnet

import (
	"unsafe"

	"weft/transport/rdma"
)

// buffer is host memory that a rank has registered.
type buffer struct {
	m     *member
	bytes []byte
	Buf
}

func (m *member) memory(size int) *buffer {
	b, a, err := mapMemory(max(size, 1))
	if err != nil {
		m.t.Fatal(err)
	}
	h, err := m.RegMr(a, uint64(size), rdma.MemHost)
	if err != nil {
		m.t.Fatal(err)
	}
	return &buffer{m, b[:size], Buf{a, h}}
}

// at is the buffer from there on.
func (b *buffer) at(off int) Buf { return Buf{b.Address + uintptr(off), b.Handle} }

func (b *buffer) end() {
	if err := b.m.DeregMr(b.Handle); err != nil {
		b.m.t.Error(err)
	}
}

func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
