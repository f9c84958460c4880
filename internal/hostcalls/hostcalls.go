// Package hostcalls lets Go tests call the executor as a host's threads do;
// the library does not contain it.
package hostcalls

/*
#cgo CFLAGS: -std=gnu11 -Wall -I${SRCDIR}/../../transport/fastpath
#include "fastpath.h"

static int call_isend(uintptr_t comm, uintptr_t data, size_t size, int tag, uintptr_t mh, uintptr_t* req) {
	return weft_isend((void*)comm, (void*)data, size, tag, (void*)mh, NULL, (void**)req);
}

static int call_irecv(uintptr_t comm, int n, uintptr_t* data, size_t* sizes, int* tags, uintptr_t* mhs, uintptr_t* req) {
	void *d[WF_GROUP], *m[WF_GROUP];
	for (int i = 0; i < n && i < WF_GROUP; i++) {
		d[i] = (void*)data[i];
		m[i] = (void*)mhs[i];
	}
	return weft_irecv((void*)comm, n, d, sizes, tags, m, NULL, (void**)req);
}

static int call_waits(uintptr_t req) { return weft_test_waits((void*)req); }
static int call_test(uintptr_t req, int* done, int* sizes) { return weft_test((void*)req, done, sizes); }

static int call_iflush(uintptr_t comm, int n, uintptr_t* data, int* sizes, uintptr_t* mh, uintptr_t* req) {
	return weft_iflush((void*)comm, n, (void**)data, sizes, (void**)mh, (void**)req);
}

static __thread struct wf_fault last;

static int keep_fault(uint64_t cookie, const struct wf_fault* f) {
	(void)cookie;
	if (f->kind != WF_FAULT_ENDED) last = *f; // else the cause came before
	return 100 + (int)f->kind;
}

static __thread uint64_t wanted; // times

static void keep_wants(uint64_t cookie) {
	(void)cookie;
	wanted++;
}

static uint64_t wants(void) { return wanted; }

static const struct wf_upcalls keeper = {.fault = keep_fault, .wants = keep_wants};

static const struct wf_upcalls* upcalls(void) { return &keeper; }
static struct wf_fault last_fault(void) { return last; }
*/
import "C"

import (
	"unsafe"

	_ "weft/transport/fastpath" // the executor itself
)

// Buf is memory that one entry of a call names.
type Buf struct {
	Addr   uintptr
	Size   uint64
	Tag    int32
	Handle uintptr // of its registration
}

// Isend posts a send; a request of 0 means "not yet".
func Isend(comm uintptr, b Buf) (request uintptr, code int32) {
	var r C.uintptr_t
	rc := C.call_isend(C.uintptr_t(comm), C.uintptr_t(b.Addr), C.size_t(b.Size), C.int(b.Tag), C.uintptr_t(b.Handle), &r)
	return uintptr(r), int32(rc)
}

// Irecv posts a group of up to eight receives; a request of 0 means "not yet".
func Irecv(comm uintptr, bufs ...Buf) (request uintptr, code int32) {
	var data, handles [8]C.uintptr_t
	var sizes [8]C.size_t
	var tags [8]C.int
	for i, b := range bufs {
		data[i], sizes[i], tags[i], handles[i] = C.uintptr_t(b.Addr), C.size_t(b.Size), C.int(b.Tag), C.uintptr_t(b.Handle)
	}
	var r C.uintptr_t
	rc := C.call_irecv(C.uintptr_t(comm), C.int(len(bufs)), &data[0], &sizes[0], &tags[0], &handles[0], &r)
	return uintptr(r), int32(rc)
}

// Test asks a request; sizes are valid once done.
func Test(request uintptr) (done bool, sizes [8]int32, code int32) {
	var d C.int
	var s [8]C.int
	rc := C.call_test(C.uintptr_t(request), &d, &s[0])
	for i := range s {
		sizes[i] = int32(s[i])
	}
	return d != 0, sizes, int32(rc)
}

// Waits makes progress for a request: 1, it is not done; 0, it is; -1, only Test can tell.
func Waits(request uintptr) int { return int(C.call_waits(C.uintptr_t(request))) }

// Iflush asks for the data of up to eight receives to be visible; a request of 0
// means that it is.
func Iflush(comm uintptr, bufs ...Buf) (request uintptr, code int32) {
	var data, handles [8]C.uintptr_t
	var sizes [8]C.int
	for i, b := range bufs {
		data[i], sizes[i], handles[i] = C.uintptr_t(b.Addr), C.int(b.Size), C.uintptr_t(b.Handle)
	}
	var r C.uintptr_t
	rc := C.call_iflush(C.uintptr_t(comm), C.int(len(bufs)), &data[0], &sizes[0], &handles[0], &r)
	return uintptr(r), int32(rc)
}

// Fault is what the executor raised.
type Fault struct {
	Kind, Lane, Entry uint32
	Err               int32
	Seq, Want, Got    uint64
	Where             string
}

// Wants is how often lanes have wanted their Go side on this thread.
func Wants() int { return int(C.wants()) }

// Upcalls is a table (*C.struct_wf_upcalls) that keeps the last fault of a
// thread and returns 100 more than its kind.
func Upcalls() unsafe.Pointer { return unsafe.Pointer(C.upcalls()) }

// LastFault is the last one raised on this thread, but for requests on what had ended.
func LastFault() Fault {
	f := C.last_fault()
	return Fault{
		Kind: uint32(f.kind), Lane: uint32(f.lane), Entry: uint32(f.entry), Err: int32(f.err), Seq: uint64(f.seq),
		Want: uint64(f.want), Got: uint64(f.got), Where: C.GoString(f.where),
	}
}
