package collnet

import (
	"math/bits"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/rdma"
)

const leastScratch = 64 << 10

// scratch is memory of the comm's own, registered on a link.
type scratch struct {
	link    Link
	bytes   []byte
	address uintptr
	handle  uintptr
}

// grow has at least size bytes; what was there before is lost.
func (s *scratch) grow(link Link, size int) error {
	if size <= len(s.bytes) {
		return nil
	}
	if err := s.free(); err != nil {
		return err
	}
	size = max(leastScratch, 1<<bits.Len(uint(size-1)))
	b, address, err := mapMemory(size)
	if err != nil {
		return report.Errorf(report.Host, "collNet", "%d bytes of scratch memory: %w", size, err).
			Try("see ulimit -v and the memory limit of the container")
	}
	*s = scratch{link: link, bytes: b, address: address}
	if link == nil { // of a comm of one rank
		return nil
	}
	if s.handle, err = link.RegMr(address, uint64(size), rdma.MemHost); err != nil {
		_ = unix.Munmap(b)
		*s = scratch{}
		return err
	}
	return nil
}

// free gives the memory back, unless something may still write it.
func (s *scratch) free() error {
	if s.bytes == nil {
		return nil
	}
	old := *s
	*s = scratch{}
	if old.link != nil {
		if err := old.link.DeregMr(old.handle); err != nil {
			return err
		}
	}
	if err := unix.Munmap(old.bytes); err != nil {
		return report.Errorf(report.Internal, "collNet", "giving scratch memory back: %w", err)
	}
	return nil
}

// at is a part of it.
func (s *scratch) at(off, size int) Buffer {
	return Buffer{Address: s.address + uintptr(off), Size: size, Handle: s.handle}
}
