// Package fastpath is the C executor that runs a connection's plan for isend, irecv, iflush and test, and the Go side of
// its slabs: what the core does to a comm while the host's threads use it.
//
// The layout, the calls and who writes which word are in fastpath.h, from which weft/gen makes zz_view.go.
package fastpath

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -fvisibility=hidden -I${SRCDIR}/../../headers -I${SRCDIR}/../record -I${SRCDIR}/../meter
#include "fastpath.h"
*/
import "C"
