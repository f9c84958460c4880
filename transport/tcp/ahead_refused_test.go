package tcp_test

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// A message that is ahead and too large ends its receives as soon as both are there; either side finds that by itself. What else
// belongs to the group is nobody's, and the comm lives on.
func TestAheadIsRefused(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("receive later %v", late), func(t *testing.T) {
			tx, rx := connected(t, 2, 121)
			const own = 3 // what a comm returns without a core that names a code
			var bad uintptr
			post := func() { bad, _ = hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0), rx.buf(8, 8, 1)) }
			if !late {
				post()
			}
			copy(tx.mem, "too large to fit")
			requests := []uintptr{isend(t, tx, tx.buf(0, 16, 0)), isend(t, tx, tx.buf(0, 8, 1))}
			if _, rc := hostcalls.Finish(t, requests...); rc != 0 {
				t.Fatalf("the sends end with %d", rc)
			}
			if late {
				post()
			}
			if _, rc := hostcalls.Finish(t, bad); rc != own {
				t.Errorf("the receive ends with %d", rc)
			}
			if ok, err := rx.comm.RefuseGroup(1, 55, func() { t.Error("it is said twice") }); err != nil || !ok {
				t.Errorf("a peer that refuses the group as well: %v, %v", ok, err)
			}
			if !bytes.Equal(rx.mem[:16], make([]byte, 16)) {
				t.Error("bytes of a refused message were written")
			}
			for i := range 200 { // more than what a stash keeps
				size := 8 + i%2*waitsForCTS
				good, _ := hostcalls.Irecv(rx.handle, rx.buf(64, size, int32(i%2)))
				copy(tx.mem, fmt.Sprintf("%08d", i))
				if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, size, int32(i%2))), good); rc != 0 || string(rx.mem[64:72]) != fmt.Sprintf("%08d", i) {
					t.Fatalf("message %d: code %d, bytes %q", i, rc, rx.mem[64:72])
				}
			}
		})
	}
}

// A group that is refused by its own irecv is announced all the same: its sender learns of it.
func TestRefusedByIrecvIsAnnounced(t *testing.T) {
	tx, rx := connected(t, 1, 136)
	first, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 1))
	early := isend(t, tx, tx.buf(0, 16, 5))
	if _, rc := hostcalls.Finish(t, early); rc != 0 {
		t.Fatal(rc)
	}
	for range 100 { // its CTS is out, and the message is here
		hostcalls.Test(first)
	}
	bad, _ := hostcalls.Irecv(rx.handle, rx.buf(8, 8, 5), rx.buf(16, waitsForCTS, 6))
	if _, rc := hostcalls.Finish(t, bad); rc == 0 {
		t.Error("the group ends well")
	}
	last := isend(t, tx, tx.buf(0, 8, 1))
	if _, rc := hostcalls.Finish(t, first, last); rc != 0 {
		t.Errorf("the receive before it ends with %d", rc)
	}
	if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, waitsForCTS, 6))); rc == 0 {
		t.Error("the other send of the group ends well")
	}
}

// A refused group is over when the rest of a frame has come, also when nothing else is posted.
func TestRefusedInMidFrameEnds(t *testing.T) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, rx := connectedBy(t, [2][]int{{p[0]}, {p[1]}}, 137, tcp.Stash)
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 16, 0), rx.buf(16, 8, 1))
	poll := func() {
		for range 8 {
			if done, _, rc := hostcalls.Test(r); done || rc != 0 {
				t.Fatalf("done %v, code %d", done, rc)
			}
		}
	}
	poll() // its CTS is out
	write(t, p[0], append(frame(4, 255, 0, 16, 16, 0, 1), "half of "...))
	poll()
	if ok, err := rx.comm.RefuseGroup(1, 55, func() {}); err != nil || !ok {
		t.Fatal(err)
	}
	poll()
	write(t, p[0], []byte("sixteen."))
	if _, rc := hostcalls.Finish(t, r); rc != 55 {
		t.Errorf("code %d", rc)
	}
}
