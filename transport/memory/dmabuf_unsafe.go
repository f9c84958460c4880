package memory

// unsafe here: mmap and munmap of a DMA-BUF that the executor reaches by address.

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/transport/fastpath"
)

// mapping is a DMA-BUF seen through the CPU.
type mapping struct {
	fd   int
	addr unsafe.Pointer
	size uintptr
}

// Map gives the CPU access to m, which lies at offset of the DMA-BUF fd by what the host says.
func (m *Registration) Map(fd int, offset uint64) (err error) {
	m.mapped, m.CPU, err = mapBuffer(fd, dmaBufOffset(m.Addr, offset), m.Size)
	return err
}

// mapBuffer maps size bytes at offset of a copy of fd and returns where they start.
func mapBuffer(fd int, offset, size uint64) (*mapping, uintptr, error) {
	page := uint64(os.Getpagesize())
	start := offset &^ (page - 1)
	length := offset - start + size
	if size == 0 || length < size || length > 1<<47 || offset > 1<<62 {
		return nil, 0, syscall.EINVAL
	}
	dup, err := copyFD(fd)
	if err != nil {
		return nil, 0, err
	}
	m := &mapping{fd: dup, size: uintptr(length)}
	// A plain file that ends early would raise SIGBUS later; a DMA-BUF says its size the same way.
	if end, err := unix.Seek(dup, 0, unix.SEEK_END); err == nil && uint64(end) < offset+size {
		m.close()
		return nil, 0, errors.New("the buffer ends before that")
	}
	m.addr, err = unix.MmapPtr(dup, int64(start), nil, m.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		m.close()
		return nil, 0, err
	}
	return m, uintptr(m.addr) + uintptr(offset-start), nil
}

func (m *mapping) close() {
	if m.addr != nil {
		unix.MunmapPtr(m.addr, m.size)
		m.addr = nil
	}
	fastpath.CloseFD(m.fd)
}
