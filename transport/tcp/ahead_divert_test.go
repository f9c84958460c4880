package tcp_test

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// The receive of a message that is ahead comes while the message does. What has arrived moves there, and the rest goes there at
// once; but for a receive that is another's or too small.
func TestAheadMeetsItsReceiveHalfway(t *testing.T) {
	const size, half = 5000, 1500
	message := make([]byte, size)
	for i := range message {
		message[i] = byte(1 + i%251)
	}
	const aheadOf, first, second = 7, 1, 2 // tags
	header := func(tag, seq uint64, n uint32) []byte { return frame(4, 255, 0, n, n, tag|64<<32, seq) }
	for _, c := range []struct {
		what     string
		post     func(rx *side) uintptr // after the first half
		at       int                    // of its receive in the memory, when half has come
		refused  bool
		receives int // of the message's bytes, once all have come
	}{
		{"its receive", func(rx *side) uintptr { r, _ := hostcalls.Irecv(rx.handle, rx.buf(9000, size+1, aheadOf)); return r }, 9000, false, size},
		{"its receive at an odd place", func(rx *side) uintptr { r, _ := hostcalls.Irecv(rx.handle, rx.buf(9003, size, aheadOf)); return r }, 9003, false, size},
		{"another receive and its own", func(rx *side) uintptr {
			r, _ := hostcalls.Irecv(rx.handle, rx.buf(64, 8, second), rx.buf(9000, size, aheadOf))
			return r
		}, 9000, false, size},
		{"a receive that is too small", func(rx *side) uintptr { r, _ := hostcalls.Irecv(rx.handle, rx.buf(9000, size-1, aheadOf)); return r }, 9000, true, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, rx := connectedBy(t, [2][]int{{p[0]}, {p[1]}}, 123, tcp.Stash)
			opener, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, first))
			for range 8 {
				hostcalls.Test(opener) // its CTS is out
			}
			write(t, p[0], append(append(header(first, 1, 8), "opening."...), append(header(aheadOf, 1, size), message[:half]...)...))
			if _, rc := hostcalls.Finish(t, opener); rc != 0 {
				t.Fatalf("code %d", rc)
			}
			r := c.post(rx)
			for range 8 {
				if done, _, rc := hostcalls.Test(r); done || rc != 0 {
					t.Fatalf("half of the message has come: done %v, code %d", done, rc)
				}
			}
			if came := bytes.Equal(rx.mem[c.at:c.at+half], message[:half]); came == c.refused {
				t.Errorf("half of the message has come; it is in its receive: %v", came)
			}
			rest := message[half:]
			if c.what == "another receive and its own" {
				rest = append(rest[:len(rest):len(rest)], append(header(second, 1, 8), "another."...)...)
			}
			write(t, p[0], rest)
			sizes, rc := hostcalls.Finish(t, r)
			if c.refused != (rc != 0) {
				t.Fatalf("code %d", rc)
			}
			if got := rx.mem[c.at : c.at+size]; !bytes.Equal(got[:c.receives], message[:c.receives]) || !bytes.Equal(got[c.receives:], make([]byte, size-c.receives)) {
				t.Errorf("other bytes arrived, or bytes of a message that was refused")
			}
			if !c.refused && int(max(sizes[0][0], sizes[0][1])) != size {
				t.Errorf("sizes %v", sizes)
			}
			last, _ := hostcalls.Irecv(rx.handle, rx.buf(100, 8, first))
			write(t, p[0], append(header(first, 2, 8), "the next"...))
			if _, rc := hostcalls.Finish(t, last); rc != 0 || string(rx.mem[100:108]) != "the next" {
				t.Errorf("the next message: code %d, %q", rc, rx.mem[100:108])
			}
		})
	}
}

// The group that has its receive is refused while the message arrives: the rest is nobody's, and the connection goes on.
func TestAheadMeetsARefusedReceive(t *testing.T) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, rx := connectedBy(t, [2][]int{{p[0]}, {p[1]}}, 124, tcp.Stash)
	opener, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 1))
	for range 8 {
		hostcalls.Test(opener) // its CTS is out
	}
	message := bytes.Repeat([]byte("message "), 500)
	header := func(tag, seq uint64, n int) []byte { return frame(4, 255, 0, uint32(n), uint32(n), tag|64<<32, seq) }
	write(t, p[0], append(append(header(1, 1, 8), "opening."...), append(header(7, 1, len(message)), message[:1000]...)...))
	if _, rc := hostcalls.Finish(t, opener); rc != 0 {
		t.Fatalf("code %d", rc)
	}
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(9000, len(message), 7), rx.buf(64, 8, 2))
	for range 40 { // so many that irecv itself sends their CTS, and nothing is read
		if other, rc := hostcalls.Irecv(rx.handle, rx.buf(200, 8, 9)); other == 0 || rc != 0 {
			t.Fatalf("irecv returned %#x, %d", other, rc)
		}
	}
	if ok, err := rx.comm.RefuseGroup(2, 55, func() {}); err != nil || !ok { // the sender refused the other message
		t.Fatalf("%v, %v", ok, err)
	}
	if _, rc := hostcalls.Finish(t, r); rc != 55 {
		t.Fatalf("code %d", rc)
	}
	last, _ := hostcalls.Irecv(rx.handle, rx.buf(100, 8, 1))
	for range 8 {
		hostcalls.Test(last)
	}
	write(t, p[0], append(message[1000:len(message):len(message)], append(header(1, 2, 8), "the next"...)...))
	if _, rc := hostcalls.Finish(t, last); rc != 0 || string(rx.mem[100:108]) != "the next" {
		t.Errorf("the next message: code %d, %q", rc, rx.mem[100:108])
	}
	if !bytes.Equal(rx.mem[9000:9000+len(message)], make([]byte, len(message))) {
		t.Error("bytes of a message whose group was refused were written")
	}
}
