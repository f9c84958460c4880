// Package guest is how the library lives in a process that is not its own: when Go starts and on which threads, which signals its
// threads take and on which stack, and what the host hears when there is no room for it. It is C, since it acts before Go does;
// internal/link puts it before Go's own start.
package guest

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -I${SRCDIR}/../headers -I${SRCDIR}/../transport/fastpath
#include "guest.h"
*/
import "C"

import (
	_ "weft/headers"            // a changed header must rebuild this package
	_ "weft/transport/fastpath" // the fork flag
)

// Files is the limit of open files before the Go runtime raised it; 0 when that is not known.
func Files() (soft, hard uint64) {
	var s, h C.uint64_t
	C.weft_files_before_go(&s, &h)
	return uint64(s), uint64(h)
}

// SignalStacks gives the host's signal handlers SA_ONSTACK where they lack it, and returns which lacked it since the last call.
func SignalStacks() []int {
	var signals []int
	for set, n := uint64(C.weft_signal_stacks()), 1; set != 0; set, n = set>>1, n+1 {
		if set&1 != 0 {
			signals = append(signals, n)
		}
	}
	return signals
}
