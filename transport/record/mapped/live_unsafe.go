package mapped

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/record/format"
	"weft/transport/task"
)

// Live says in the file that the process runs, as long as it does: so that a file
// tells when a process was stopped, or ended.
func (f *File) Live(log report.Logger) {
	f.alive()
	go func() {
		defer task.Rescue(log, "record", task.Nobody)
		for range time.Tick(time.Second / 2) {
			f.alive()
		}
	}()
}

func (f *File) alive() {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&f.Mem[format.OffAlive])), uint64(now.Nano()))
	}
}
