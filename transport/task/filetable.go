package task

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// FileTable keeps the kernel's table of this process's descriptors larger than
// connections need, as far as the soft limit of open files allows. The kernel enlarges
// a full one, and whoever opens something waits meanwhile for a grace period of RCU: 4
// to 9 ms, measured (expand_files in fs/file.c). A thousand connects at once met it
// three times on either side.
type FileTable struct {
	next    atomic.Int64 // the descriptor that asks for more room
	growing atomic.Bool
}

const leastFiles = 1024

// Holds makes room in the background, if fd, which was opened just now, is in the upper
// half of the table.
func (t *FileTable) Holds(fd int, log report.Logger) {
	if int64(fd) < t.next.Load() || !t.growing.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer t.growing.Store(false)
		defer Rescue(log, "open files", Nobody)
		t.next.Store(int64(grow(max(leastFiles, 4*(fd+1)))))
	}()
}

// grow gives the table room for n descriptors, or for as many as the limit allows, and
// returns the one that is to ask for more. A table that cannot grow now grows when it is
// full.
func grow(n int) (next int) {
	next = n / 2
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && uint64(n) > lim.Cur {
		n = int(lim.Cur)
		next = n // none, unless the limit is raised
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return next
	}
	defer unix.Close(fd)
	if last, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, n-1); err == nil {
		unix.Close(last)
	}
	return next
}
