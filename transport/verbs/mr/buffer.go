package mr

import (
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// Buffer is a range of memory as the host named it. It outlives its
// registrations and can be registered with any card, also later.
type Buffer struct {
	Addr   uintptr
	Size   uint64
	Kind   rdma.MemKind
	Strict bool // the peer writes weft's own words: in order, never relaxed, and not a byte beside them

	fd     int // of the DMA-BUF, a copy of the caller's; -1: none
	offset uint64
	file   [2]uint64 // device and inode, which name the DMA-BUF
}

// NewBuffer names host memory, or GPU memory by its virtual address.
func NewBuffer(addr uintptr, size uint64, kind rdma.MemKind) (*Buffer, error) {
	b := &Buffer{Addr: addr, Size: size, Kind: kind, fd: -1}
	if end := uint64(addr) + size; size == 0 || end < size {
		return nil, report.Errorf(report.Misuse, "regMr", "%d bytes at %#x", size, uint64(addr))
	}
	return b, nil
}

// NewDMABuf names memory behind a DMA-BUF. The caller may close its
// descriptor at once: the buffer has a copy until Close.
func NewDMABuf(addr uintptr, size, offset uint64, fd int, kind rdma.MemKind) (*Buffer, error) {
	b, err := NewBuffer(addr, size, kind)
	if err != nil {
		return nil, err
	}
	b.offset = DMABufOffset(addr, offset)
	if end := b.offset + size; end < size || b.offset < offset {
		return nil, report.Errorf(report.Misuse, "regMrDmaBuf", "%d bytes at offset %d", size, offset)
	}
	if b.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "copy descriptor %d: %w", fd, err).
			Try("the descriptor must be open; raise the limit of open files (ulimit -n) if it is EMFILE")
	}
	if err := fastpath.TrackFD(b.fd); err != nil {
		unix.Close(b.fd)
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "%w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(b.fd, &st); err != nil {
		b.Close()
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "descriptor %d: %w", fd, err)
	}
	b.file = [2]uint64{st.Dev, st.Ino}
	return b, nil
}

// DMABufOffset is where in a DMA-BUF the memory at addr begins. Devices map whole
// pages, so an offset means addr itself if both lie alike in their pages; the
// offset of a page means the page that addr is in, as it does for NCCL's net_ib.
func DMABufOffset(addr uintptr, offset uint64) uint64 {
	if page := uint64(os.Getpagesize()); offset%page == 0 {
		return offset + uint64(addr)%page
	}
	return offset
}

// Close gives up the buffer's own resources; its registrations are released before.
func (b *Buffer) Close() {
	if b.fd >= 0 {
		fastpath.CloseFD(b.fd)
		b.fd = -1
	}
}

// span is a registered range, and for a DMA-BUF where it begins in the buffer.
type span struct{ start, end, offset uint64 }

// span is the range in whole pages, as it is registered: neighbours in the same
// pages then share a registration. A DMA-BUF that does not lie in its pages as the
// addresses do in theirs is not widened, nor is a ring: the peer has its key, and
// must not write what lies beside it.
func (b *Buffer) span() span {
	page := uint64(os.Getpagesize())
	start, end := uint64(b.Addr)&^(page-1), (uint64(b.Addr)+b.Size+page-1)&^(page-1)
	if end < start { // the last page of the address space
		end = uint64(b.Addr) + b.Size
	}
	if b.Strict || b.fd >= 0 && (b.offset^uint64(b.Addr))%page != 0 {
		start, end = uint64(b.Addr), uint64(b.Addr)+b.Size
	}
	if b.fd < 0 {
		return span{start: start, end: end}
	}
	return span{start: start, end: end, offset: b.offset - (uint64(b.Addr) - start)}
}
