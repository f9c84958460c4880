package plugin

// Called by requests.c; declared in requests.h.

/*
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../headers
#include "requests.h"
*/
import "C"

import "weft/collnet"

//export weft_coll_help
func weft_coll_help(comm C.uintptr_t) {
	defer func() {
		if r := recover(); r != nil {
			recovered("collNet.test", r)
		}
	}()
	if c, err := collnet.CommOf(uintptr(comm)); err == nil { // else it was closed meanwhile, and its requests are not known any more
		c.Help()
	}
}
