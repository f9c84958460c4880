package fastpath

/*
#include "fastpath.h"
*/
import "C"

import (
	"fmt"
	"syscall"
)

// TrackFD has fd closed in a forked child, where no weft call works any more.
func TrackFD(fd int) error {
	if rc := C.wf_track_fd(C.int(fd)); rc != 0 {
		return fmt.Errorf("fastpath: track descriptor %d: %w", fd, syscall.Errno(rc))
	}
	return nil
}

// UntrackFD forgets fd; call it before closing fd.
func UntrackFD(fd int) { C.wf_untrack_fd(C.int(fd)) }

// ProgressWake tells threads that block in an old table's connect or accept that something changed.
func ProgressWake() { C.wf_progress_wake() }

// SetReaping says how many closed connections still drain; the exit of the process waits for 0, at most 2 s.
func SetReaping(n int) { C.wf_set_reaping(C.uint32_t(n)) }

// Forked reports whether this process is a forked child, where every call must answer an error.
func Forked() bool { return C.weft_forked() != 0 }
