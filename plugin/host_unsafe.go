package plugin

// The plugin's whole surface of cgo and unsafe, but for generated code:
// libc's environment, the host's log function and hints, C strings that live for ever,
// and the host's handle buffers.

/*
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../headers -I${SRCDIR}/../transport/fastpath -I${SRCDIR}/../transport/record
#include <stdlib.h>
#include "hints.h"
#include "host.h"
#include "requests.h"
*/
import "C"

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/collnet"
	"weft/guest"
	_ "weft/headers" // its embedded files are what host.c includes: a changed header rebuilds this package
	"weft/internal/report"
)

// cHost is the process as C shows it.
type cHost struct{}

// Getenv asks libc: os.Getenv has the environment as it was when Go started,
// and NCCL puts nccl.conf into it later.
func (cHost) Getenv(name string) (string, bool) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	value := C.getenv(cname)
	if value == nil {
		return "", false
	}
	return C.GoString(value), true
}

func (cHost) Environ() []string {
	var all []string
	for p := C.weft_host_environ(); p != nil && *p != nil; p = (**C.char)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p))) {
		all = append(all, C.GoString(*p))
	}
	return all
}

func (cHost) Module(address uintptr) module {
	var name *C.char
	base := C.weft_host_module(C.uintptr_t(address), &name)
	if base == 0 {
		return module{}
	}
	return module{base: uintptr(base), name: C.GoString(name)}
}

func (cHost) Exports(address uintptr, symbol string) bool {
	csymbol := C.CString(symbol)
	defer C.free(unsafe.Pointer(csymbol))
	return C.weft_host_exports(C.uintptr_t(address), csymbol) != 0
}

// Log calls the host's function. A line of the background is left out when those before it have not come back for long: what else
// the background does must go on.
func (cHost) Log(logger uintptr, level int32, flags uint64, file string, line int, text string) {
	give := guest.LogPlaces.TakeWithin(silence)
	if give == nil {
		return
	}
	defer give()
	cfile, ctext := C.CString(file), C.CString(text)
	C.weft_host_log(C.uintptr_t(logger), C.int(level), C.ulong(flags), cfile, C.int(line), ctext)
	C.free(unsafe.Pointer(cfile))
	C.free(unsafe.Pointer(ctext))
}

// CString lives for ever: the host keeps the pointers of getProperties.
func (cHost) CString(s string) *byte { return (*byte)(unsafe.Pointer(C.CString(s))) }

// Thread is the host's own: an exported call runs on it.
func (cHost) Thread() int { return unix.Gettid() }

func (cHost) StepEvents(callback uintptr) uintptr {
	return uintptr(C.weft_host_step_events(C.uintptr_t(callback)))
}

func (cHost) Files() (soft, hard uint64) { return guest.Files() }

func (cHost) SignalStacks() []int { return guest.SignalStacks() }

// KeepHints makes room for a context's hints; DropHints gives it back.
func (cHost) KeepHints(ctx uintptr) error {
	if errno := C.weft_hints_keep(C.uintptr_t(ctx)); errno != 0 {
		return report.Errorf(report.Host, "init", "room for the hints of a communicator: %w", unix.Errno(errno))
	}
	return nil
}

func (cHost) DropHints(ctx uintptr) { C.weft_hints_drop(C.uintptr_t(ctx)) }

// Hints are zero where the host has said nothing.
func (cHost) Hints(ctx uintptr) (a abi.NetAttr) {
	C.weft_hints_get(C.uintptr_t(ctx), (*C.ncclNetAttr_cur_t)(unsafe.Pointer(&a)))
	return a
}

// handleBytes is the host's buffer for a connection handle. Its size is not
// passed: it is a constant of the table.
func handleBytes(p unsafe.Pointer, table int) []byte {
	return unsafe.Slice((*byte)(p), handleSize(table))
}

// handlesOf are copies of the handles of n ranks.
func handlesOf(p *unsafe.Pointer, n, table int) ([][]byte, error) {
	all := make([][]byte, n)
	for i, h := range unsafe.Slice(p, n) {
		if h == nil {
			return nil, report.Errorf(report.Misuse, "collNet.connect", "the handle of rank %d is NULL", i)
		}
		all[i] = bytes.Clone(handleBytes(h, table))
	}
	return all, nil
}

// partsOf are the buffers of an all-gather or a reduce-scatter.
func partsOf(p *abi.NetSGE, n int) []collnet.Part {
	all := make([]collnet.Part, n)
	for i, s := range unsafe.Slice(p, n) {
		all[i] = collnet.Part{Buf: collnet.Buf{Address: s.Address, Handle: s.Mhandle}, Size: int(min(s.Size, 1<<62))}
	}
	return all
}

// cRequests are request words that C reads.
type cRequests struct{}

var (
	_ = [1]struct{}{}[C.WEFT_BLOCK-collnet.MaxRequests]
	_ = [1]struct{}{}[C.WEFT_AWAITED-collnet.MaxAwaited]
	_ = [1]struct{}{}[C.WEFT_REQUEST_KIND-collnet.RequestKind]
)

func (cHost) Requests() collnet.Requests { return cRequests{} }

func (cRequests) Open(comm uintptr) (int, error) {
	var block C.uint32_t
	if errno := C.weft_block_open(C.uintptr_t(comm), &block); errno != 0 {
		return 0, report.Errorf(report.Host, "collNet.connect", "room for the requests of a comm: %w", unix.Errno(errno))
	}
	return int(block), nil
}

func (cRequests) Take(block int) uintptr { return uintptr(C.weft_request_take(C.uint32_t(block))) }

func (cRequests) Done(request uintptr, size int) {
	C.weft_request_done(C.uintptr_t(request), C.int(size))
}

func (cRequests) Fail(request uintptr, code int32) {
	C.weft_request_fail(C.uintptr_t(request), C.int(code))
}

func (cRequests) Await(block int, groups []uintptr) {
	C.weft_block_await(C.uint32_t(block), (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(groups))), C.uint32_t(len(groups)))
}

func (cRequests) Looked(block int) bool { return C.weft_block_looked(C.uint32_t(block)) != 0 }

func (cRequests) Close(block int) { C.weft_block_close(C.uint32_t(block)) }
