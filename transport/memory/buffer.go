package memory

import (
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// Buffer is a range of memory as the host named it, for cards. It outlives what
// ports have of it, and any port can be given it, also later.
type Buffer struct {
	Addr   uintptr
	Size   uint64
	Kind   rdma.MemKind
	Strict bool // the peer writes weft's own words: in order, never relaxed, and not a byte beside them

	FD     int       // of the DMA-BUF, a copy of the caller's; -1: none
	Offset uint64    // where in the DMA-BUF it begins
	File   [2]uint64 // device and inode, which name the DMA-BUF
}

// NewBuffer names host memory, or GPU memory by its virtual address.
func NewBuffer(addr uintptr, size uint64, kind rdma.MemKind) (*Buffer, error) {
	b := &Buffer{Addr: addr, Size: size, Kind: kind, FD: -1}
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
	b.Offset = dmaBufOffset(addr, offset)
	if end := b.Offset + size; end < size || b.Offset < offset {
		return nil, report.Errorf(report.Misuse, "regMrDmaBuf", "%d bytes at offset %d", size, offset)
	}
	if b.FD, err = copyFD(fd); err != nil {
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "copy descriptor %d: %w", fd, err).
			Try("the descriptor must be open; raise the limit of open files (ulimit -n) if it is EMFILE")
	}
	var st unix.Stat_t
	if err := unix.Fstat(b.FD, &st); err != nil {
		b.Close()
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "descriptor %d: %w", fd, err)
	}
	b.File = [2]uint64{st.Dev, st.Ino}
	return b, nil
}

// copyFD returns a descriptor of the same file, which fastpath.CloseFD closes.
func copyFD(fd int) (int, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := fastpath.TrackFD(own); err != nil {
		unix.Close(own)
		return -1, err
	}
	return own, nil
}

// dmaBufOffset is where in a DMA-BUF the memory at addr begins. Devices map whole
// pages, so an offset means addr itself if both lie alike in their pages; the
// offset of a page means the page that addr is in, as it does for NCCL's net_ib.
func dmaBufOffset(addr uintptr, offset uint64) uint64 {
	if page := uint64(os.Getpagesize()); offset%page == 0 {
		return offset + uint64(addr)%page
	}
	return offset
}

// Close gives up the buffer's own resources, once no port has it.
func (b *Buffer) Close() {
	if b.FD >= 0 {
		fastpath.CloseFD(b.FD)
		b.FD = -1
	}
}
