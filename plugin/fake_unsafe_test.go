package plugin

import (
	"unsafe"

	"weft/abi"
)

// pointer is a handle buffer as the host passes it.
func pointer(b *[128]byte) unsafe.Pointer { return unsafe.Pointer(b) }

// scribble fills a struct as uninitialised memory would.
func scribble(p *abi.NetProperties) {
	for i := range unsafe.Sizeof(*p) {
		*(*byte)(unsafe.Add(unsafe.Pointer(p), i)) = 0xa5
	}
}

func pointers(handles []*[128]byte) *unsafe.Pointer {
	all := make([]unsafe.Pointer, len(handles))
	for i, h := range handles {
		all[i] = pointer(h)
	}
	return unsafe.SliceData(all)
}

// asNumbers is memory as 32-bit numbers, and where it is.
func asNumbers(m []byte) ([]int32, uintptr) {
	p := unsafe.Pointer(unsafe.SliceData(m))
	return unsafe.Slice((*int32)(p), len(m)/4), uintptr(p)
}
