package verbs

import (
	"errors"
	"testing"

	"weft/transport/fastpath"
	"weft/transport/hostcalls"
)

// A comm takes further lanes while it is open: not while a message is half
// posted, and with all of its bytes in place.
func TestLaneGrows(t *testing.T) {
	p := laneProvider(t)
	const size = 1 << 20
	tx, rx := laneEnds(t, p, laneConfig{lanes: 4, width: 4, stripeMin: 4096, depth: 8, most: 4096})
	full := [2]fastpath.VerbsPlan{}
	for i, s := range []*laneSide{tx, rx} {
		other := []*laneSide{rx, tx}[i]
		s.learn(other)
		full[i] = s.plan
		s.plan.Lanes, s.plan.Width = s.plan.Lanes[:1], 1
		if err := fastpath.AttachVerbs(s.comm, &s.plan); err != nil {
			t.Fatal(err)
		}
		if err := fastpath.ExtendVerbs(s.comm, &full[i]); err == nil {
			t.Error("a comm that is not open takes lanes")
		}
		for j, q := range s.qps {
			l, r, _ := PairGIDs(q.Device().GIDs(), other.qps[j].Device().GIDs())
			if err := q.Connect(t.Context(), Path{GID: l, Peer: other.qps[j].Local(r)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tx.handle, rx.handle = tx.comm.Open(), rx.comm.Open()
	if err := fastpath.ExtendVerbs(rx.comm, &full[1]); err != nil {
		t.Fatal(err)
	}
	for i := range size {
		tx.mem[i] = byte(i * 7)
	}
	in, code := hostcalls.Irecv(rx.handle, rx.buf(0, size, 1))
	if code != 0 {
		t.Fatal(code)
	}
	hostcalls.Test(in)                                          // its CTS is out
	out, code := hostcalls.Isend(tx.handle, tx.buf(0, size, 1)) // more requests than the queue holds
	if code != 0 || out == 0 {
		t.Fatal(out, code)
	}
	if err := fastpath.ExtendVerbs(tx.comm, &full[0]); !errors.Is(err, fastpath.ErrBusy) {
		t.Errorf("in the middle of a message: %v", err)
	}
	finish := func(reqs ...uintptr) {
		for range 1_000_000 {
			left := 0
			for i, r := range reqs {
				if r == 0 {
					continue
				}
				done, _, code := hostcalls.Test(r)
				if code != 0 {
					t.Fatal(code)
				}
				if left++; done {
					reqs[i] = 0
				}
			}
			if left == 0 {
				return
			}
		}
		t.Fatal("it does not end")
	}
	finish(in, out)
	for i := range size {
		if rx.mem[i] != byte(i*7) {
			t.Fatalf("byte %d is %d", i, rx.mem[i])
		}
	}
	if err := fastpath.ExtendVerbs(tx.comm, &full[0]); err != nil {
		t.Fatal(err)
	}
	if err := fastpath.ExtendVerbs(tx.comm, &full[0]); err == nil {
		t.Error("it takes the same lanes twice")
	}
	for i := range size {
		tx.mem[i] = byte(i * 11)
	}
	in, _ = hostcalls.Irecv(rx.handle, rx.buf(0, size, 2))
	hostcalls.Test(in)
	out, _ = hostcalls.Isend(tx.handle, tx.buf(0, size, 2))
	finish(in, out)
	for i := range size {
		if rx.mem[i] != byte(i*11) {
			t.Fatalf("byte %d is %d", i, rx.mem[i])
		}
	}
	for i, l := range tx.comm.LaneStates(nil) {
		if i > 0 && l.Posted == 0 {
			t.Errorf("lane %d of the new ones carried nothing", i)
		}
	}
}
