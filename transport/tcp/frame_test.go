package tcp_test

import (
	"testing"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// Every field of a header is the peer's word: one that stream.h does not allow ends the comm, and what it allows does not.
func TestHeadersAreChecked(t *testing.T) {
	const data, ahead, cts = 3, 4, 2
	set := func(at int, value byte) func([]byte) { return func(b []byte) { b[at] = value } }
	for _, c := range []struct {
		what   string
		stream int
		kind   byte
		seq    uint64
		change func([]byte)
		legal  bool
	}{
		{"DATA", 0, data, 1, nil, true},
		{"DATA on stream 1", 1, data, 1, nil, true},
		{"DATA of another lane", 0, data, 1, set(2, 1), false},
		{"DATA that hopped", 0, data, 1, set(3, 1), false},
		{"DATA of another epoch", 0, data, 1, set(4, 1), false},
		{"DATA with flags", 0, data, 1, set(7, 1), false},
		{"AHEAD", 0, ahead, 1, nil, true},
		{"AHEAD of the next group", 0, ahead, 2, nil, true},
		{"AHEAD of the group after it", 0, ahead, 3, nil, false},
		{"AHEAD of no group", 0, ahead, 0, nil, false},
		{"AHEAD on stream 1", 1, ahead, 1, nil, false},
		{"AHEAD of another lane", 0, ahead, 1, set(2, 1), false},
		{"AHEAD with flags", 0, ahead, 1, set(6, 1), false},
		{"AHEAD of an entry", 0, ahead, 1, set(1, 0), false},
		{"AHEAD at another place", 0, ahead, 1, set(20, 8), true},
		{"AHEAD outside the stash", 0, ahead, 1, set(22, tcp.Stash>>16), false},
		{"a kind that is none", 0, 5, 1, nil, false},
		{"CTS", 0, cts, 1, nil, true},
		{"CTS of another lane", 0, cts, 1, set(2, 1), false},
		{"CTS of another epoch", 0, cts, 1, set(5, 1), false},
		{"CTS with half a tag more", 0, cts, 1, set(23, 0x80), false},
		{"CTS with a payload", 0, cts, 1, set(8, 1), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			header := frame(c.kind, 0, 0, 8, 8, 0, c.seq)
			switch c.kind {
			case cts:
				header = frame(cts, 0, 1, 0, 8, 0, c.seq)
			case ahead:
				header = frame(ahead, 255, 0, 8, 8, 0, c.seq)
			}
			if c.change != nil {
				c.change(header)
			}
			if c.kind == cts {
				tx, _, fds := forged(t, 2, 131, true)
				write(t, fds[c.stream], header)
				s, rc := hostcalls.Isend(tx.handle, tx.buf(0, waitsForCTS, 7)) // of another tag: all that happens is that CTS comes in
				if s != 0 {                                                    // the comm has ended, and test tells
					_, _, rc = hostcalls.Test(s)
				}
				if ok := rc == 0; ok != c.legal || (s == 0) != c.legal {
					t.Errorf("isend returned %#x, %d: %+v", s, rc, hostcalls.LastFault())
				}
				return
			}
			_, rx, fds := forged(t, 2, 131, false)
			q, rc := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
			if q == 0 || rc != 0 {
				t.Fatalf("irecv returned %#x, %d", q, rc)
			}
			hostcalls.Test(q) // its CTS is out
			write(t, fds[c.stream], append(header, "12345678"...))
			if c.seq == 2 { // it is kept for a later group
				write(t, fds[c.stream], append(frame(data, 0, 0, 8, 8, 0, 1), "12345678"...))
			}
			if _, rc := hostcalls.Finish(t, q); (rc == 0) != c.legal {
				t.Errorf("code %d: %+v", rc, hostcalls.LastFault())
			}
		})
	}
}
