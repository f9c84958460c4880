package fastpath_test

import (
	"runtime"
	"testing"

	"weft/internal/hostcalls"
)

// A look makes a request progress as test does, takes nothing from it, and leaves to test what it cannot tell.
func TestLaneLooks(t *testing.T) {
	p := laneProvider(t)
	tx, rx := laneConnected(t, p, laneConfigs[0])
	expect := func(what string, request uintptr, want int) {
		t.Helper()
		if got := hostcalls.Waits(request); got != want {
			t.Errorf("%s: %d, want %d: %+v", what, got, want, hostcalls.LastFault())
		}
	}
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
	for range 3 { // among which the CTS leaves
		expect("a receive of which nothing has come", r, 1)
	}
	s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, 50, 0))
	if rc != 0 {
		t.Fatal(rc)
	}
	for _, request := range []uintptr{s, r} {
		looks := 0
		for hostcalls.Waits(request) > 0 && looks < 1e6 {
			looks++
		}
		for range 3 {
			expect("a request that is done", request, 0)
		}
		if done, sizes, rc := hostcalls.Test(request); !done || sizes[0] != 50 || rc != 0 {
			t.Errorf("done %v, %d bytes, code %d", done, sizes[0], rc)
		}
		expect("a request that test has taken", request, -1)
	}
	r, _ = hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
	expect("a receive", r, 1)
	other := make(chan struct{})
	go func() {
		defer close(other)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		expect("a receive, of a thread that no comm knows", r, -1)
	}()
	<-other
	rx.comm.Fail(7)
	expect("a receive of a comm that has failed", r, -1)
	if _, _, rc := hostcalls.Test(r); rc != 7 {
		t.Errorf("test returned %d", rc)
	}
	expect("no request", 0, -1)
}

// A fault that a look meets is the comm's: test has its code.
func TestLaneLookMeetsFault(t *testing.T) {
	_, rx := laneConnected(t, laneProvider(t), laneConfigs[0])
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
	if err := rx.qps[0].Fence(); err != nil {
		t.Fatal(err)
	}
	looks := 0
	for hostcalls.Waits(r) > 0 && looks < 1e6 {
		looks++
	}
	if got := hostcalls.Waits(r); got != -1 {
		t.Errorf("a look says %d after %d", got, looks)
	}
	if _, _, rc := hostcalls.Test(r); rc != 109 || hostcalls.LastFault().Err != 5 {
		t.Errorf("code %d, %+v", rc, hostcalls.LastFault())
	}
}
