package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// counter adds up what threads do, and the threads that these start.
type counter struct{ fds []int }

// countInstructions begins to count what processes execute, in the kernel too. It needs hardware that counts, which virtual
// machines rarely have.
func countInstructions(pids ...int) (*counter, error) {
	c, err := count(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS, pids...)
	switch {
	case errors.Is(err, unix.ENOENT):
		err = fmt.Errorf("%w: the machine has no counter of instructions", err)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%w: as root, or with /proc/sys/kernel/perf_event_paranoid below 2", err)
	}
	return c, err
}

func count(kind uint32, what uint64, pids ...int) (*counter, error) {
	c := &counter{}
	for _, pid := range pids {
		threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		if err != nil {
			return c, err
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				return c, err
			}
			fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: kind, Config: what, Size: unix.PERF_ATTR_SIZE_VER0, Bits: unix.PerfBitInherit}, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			if err != nil {
				c.stop()
				return c, fmt.Errorf("perf_event_open: %w", err)
			}
			c.fds = append(c.fds, fd)
		}
	}
	return c, nil
}

// stop ends the count and returns it.
func (c *counter) stop() float64 {
	var sum uint64
	for _, fd := range c.fds {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); n == len(b) && err == nil {
			sum += binary.NativeEndian.Uint64(b[:])
		}
		unix.Close(fd)
	}
	c.fds = nil
	return float64(sum)
}
