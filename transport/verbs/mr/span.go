package mr

import (
	"os"

	"weft/transport/memory"
)

// span is a registered range, and for a DMA-BUF where it begins in the buffer.
type span struct{ start, end, offset uint64 }

// spanOf is a buffer's range in whole pages, as it is registered: neighbours in the same
// pages then share a registration. A DMA-BUF that does not lie in its pages as the
// addresses do in theirs is not widened, nor is a ring: the peer has its key, and
// must not write what lies beside it.
func spanOf(b *memory.Buffer) span {
	page := uint64(os.Getpagesize())
	start, end := uint64(b.Addr)&^(page-1), (uint64(b.Addr)+b.Size+page-1)&^(page-1)
	if end < start { // the last page of the address space
		end = uint64(b.Addr) + b.Size
	}
	if b.Strict || b.FD >= 0 && (b.Offset^uint64(b.Addr))%page != 0 {
		start, end = uint64(b.Addr), uint64(b.Addr)+b.Size
	}
	if b.FD < 0 {
		return span{start: start, end: end}
	}
	return span{start: start, end: end, offset: b.Offset - (uint64(b.Addr) - start)}
}
