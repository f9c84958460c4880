package hostcalls

import (
	"slices"
	"testing"
	"time"
)

// limit bounds what a test waits for one call or one set of requests.
const limit = 30 * time.Second

// Finish tests requests in turns until all are done; their sizes, or the first
// code. Each must have been posted, and becomes 0 when it ends.
func Finish(t testing.TB, requests ...uintptr) (sizes [][8]int32, code int32) {
	t.Helper()
	sizes = make([][8]int32, len(requests))
	if slices.Contains(requests, 0) {
		t.Fatalf("a request of %x was never posted", requests)
	}
	deadline := time.Now().Add(limit)
	for left := len(requests); left > 0; {
		for i, r := range requests {
			if r == 0 {
				continue
			}
			done, s, rc := Test(r)
			if rc != 0 {
				return sizes, rc
			}
			if done {
				sizes[i], requests[i] = s, 0
				left--
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests do not end", left)
		}
	}
	return sizes, 0
}

// Send repeats a send until it is taken, or fails.
func Send(t testing.TB, comm uintptr, b Buf) (request uintptr, code int32) {
	t.Helper()
	for deadline := time.Now().Add(limit); request == 0 && code == 0; {
		request, code = Isend(comm, b)
		if time.Now().After(deadline) {
			t.Fatal("isend is never taken")
		}
	}
	return request, code
}
