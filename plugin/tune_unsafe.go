package plugin

/*
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../headers
#include "tune.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"weft/tuner"
)

// keeping protects what C keeps of vetoes.
var keeping sync.Mutex

// The two are one memory.
var _ [unsafe.Sizeof(tuner.Vetoes{})]byte = [unsafe.Sizeof(C.struct_weft_vetoes{})]byte{}

// KeepVetoes gives them to getCollInfo, until they were dropped as often; 0: there is no room.
func (cHost) KeepVetoes(v *tuner.Vetoes) uintptr {
	keeping.Lock()
	defer keeping.Unlock()
	return uintptr(C.weft_tune_keep((*C.struct_weft_vetoes)(unsafe.Pointer(v))))
}

// DropVetoes gives back what KeepVetoes returned.
func (cHost) DropVetoes(set uintptr) {
	keeping.Lock()
	defer keeping.Unlock()
	C.weft_tune_drop(C.uintptr_t(set))
}
