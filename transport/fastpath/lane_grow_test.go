package fastpath_test

import (
	"testing"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/qp"
)

// A comm takes further lanes while it is open, in the middle of a message too, and
// uses them from the group on that it is told.
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
		if _, err := fastpath.ExtendVerbs(s.comm, &full[i], 0); err == nil {
			t.Error("a comm that is not open takes lanes")
		}
		for j, q := range s.qps {
			l, r, _ := gid.Pair(s.on[j].GIDs(), other.on[j].GIDs())
			if err := q.Connect(t.Context(), qp.Path{GID: l, Peer: other.qps[j].Local(r)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tx.handle, rx.handle = tx.comm.Open(), rx.comm.Open()
	message := func(n int, between func()) {
		t.Helper()
		for i := range size {
			tx.mem[i] = byte(i * n)
		}
		in, code := hostcalls.Irecv(rx.handle, rx.buf(0, size, int32(n)))
		if code != 0 {
			t.Fatal(code)
		}
		hostcalls.Test(in)                                                 // its CTS is out
		out, code := hostcalls.Isend(tx.handle, tx.buf(0, size, int32(n))) // more requests than the queue holds
		if code != 0 || out == 0 {
			t.Fatal(out, code)
		}
		between()
		ends(t, in, out)
		for i := range size {
			if rx.mem[i] != byte(i*n) {
				t.Fatalf("byte %d is %d", i, rx.mem[i])
			}
		}
	}
	message(3, func() {})
	keys, err := fastpath.ExtendVerbs(rx.comm, &full[1], 0)
	if err != nil || keys != 2 {
		t.Fatalf("the keys are in the CTS from group %d on, %v", keys, err)
	}
	message(5, func() {
		if _, err := fastpath.ExtendVerbs(tx.comm, &full[0], 4); err != nil {
			t.Fatal(err)
		}
	})
	message(7, func() {})
	if n := len(tx.comm.LaneStates(nil)); n != 1 {
		t.Errorf("%d lanes before the group from which on they may be used", n)
	}
	message(11, func() {})
	lanes := tx.comm.LaneStates(nil)
	for i, l := range lanes {
		if i > 0 && l.Posted == 0 {
			t.Errorf("lane %d of the new ones carried nothing", i)
		}
	}
	if _, err := fastpath.ExtendVerbs(tx.comm, &full[0], 0); err == nil || len(lanes) != 4 {
		t.Errorf("%d lanes, and it takes the same twice", len(lanes))
	}
}

// ends drives requests to their end.
func ends(t *testing.T, reqs ...uintptr) {
	t.Helper()
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
