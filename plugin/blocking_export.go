package plugin

// Called by compat's hand-written adapters; declared in zz_slow.h.

/*
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../headers
#include "zz_slow.h"
*/
import "C"

import "time"

//export weft_blocking_deadline_ms
func weft_blocking_deadline_ms(kind C.int) (ms C.int64_t) {
	defer func() {
		if r := recover(); r != nil {
			recovered("wait", r)
			ms = 0 // no time at all: the wait ends with an error
		}
	}()
	return C.int64_t(theProcess.blockingDeadline(int(kind)).Milliseconds())
}

//export weft_blocking_timedout
func weft_blocking_timedout(kind, table C.int, waited C.int64_t) (rc C.int) {
	defer func() {
		if r := recover(); r != nil {
			rc = C.int(recovered("wait", r))
		}
	}()
	return C.int(done("wait", theProcess.blockingTimedOut(int(kind), int(table), time.Duration(waited)*time.Millisecond)))
}
