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
