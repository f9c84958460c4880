package collnet

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/collnet/kernels"
)

// Memory by its address, which is never Go's: the host's buffers, and scratch memory.

// pointer is an address as a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func view(address uintptr, size int) []byte { return unsafe.Slice((*byte)(pointer(address)), size) }

// move copies n bytes, which may overlap.
func move(dst, src uintptr, n int) {
	if n > 0 && dst != src {
		copy(view(dst, n), view(src, n))
	}
}

// reduce is kernels.Reduce.
func reduce(dst uintptr, dstAcc bool, src []uintptr, srcAcc bool, count int, t abi.DataType, red abi.RedOp) error {
	all := make([]unsafe.Pointer, len(src))
	for i, a := range src {
		all[i] = pointer(a)
	}
	return kernels.Reduce(pointer(dst), dstAcc, all, srcAcc, count, t, red)
}

// mapMemory takes zeroed memory of whole pages.
func mapMemory(size int) ([]byte, uintptr, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, 0, err
	}
	return b, uintptr(unsafe.Pointer(unsafe.SliceData(b))), nil
}
