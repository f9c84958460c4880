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

// CloseFD closes an fd that TrackFD has.
func CloseFD(fd int) {
	UntrackFD(fd)
	syscall.Close(fd)
}
