package fastpath

/*
#include "fastpath.h"

// Handles and addresses are numbers in Go, which must not take them for pointers.
static int call_isend(uintptr_t comm, uintptr_t data, size_t size, int tag, uintptr_t mr, uintptr_t* request) {
	return weft_isend((void*)comm, (void*)data, size, tag, (void*)mr, NULL, (void**)request);
}

static int call_irecv(uintptr_t comm, uintptr_t data, size_t size, int tag, uintptr_t mr, uintptr_t* request) {
	void *at = (void*)data, *mhandle = (void*)mr;
	return weft_irecv((void*)comm, 1, &at, &size, &tag, &mhandle, NULL, (void**)request);
}

static int call_test(uintptr_t request, int* done, int* size) { return weft_test((void*)request, done, size); }
*/
import "C"

// What the core sends and receives itself, by the host's own calls.

// Isend posts a send; a request of 0 means "not yet".
func Isend(comm, data uintptr, size int, tag int32, mr uintptr) (request uintptr, code int32) {
	var r C.uintptr_t
	rc := C.call_isend(C.uintptr_t(comm), C.uintptr_t(data), C.size_t(size), C.int(tag), C.uintptr_t(mr), &r)
	return uintptr(r), int32(rc)
}

// Irecv posts a receive; a request of 0 means "not yet".
func Irecv(comm, data uintptr, size int, tag int32, mr uintptr) (request uintptr, code int32) {
	var r C.uintptr_t
	rc := C.call_irecv(C.uintptr_t(comm), C.uintptr_t(data), C.size_t(size), C.int(tag), C.uintptr_t(mr), &r)
	return uintptr(r), int32(rc)
}

// Test asks a request; the size is valid once it is done.
func Test(request uintptr) (done bool, size int, code int32) {
	var d, s C.int
	rc := C.call_test(C.uintptr_t(request), &d, &s)
	return d != 0, int(s), int32(rc)
}
