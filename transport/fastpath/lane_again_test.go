package fastpath_test

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
	"time"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/qp"
)

// again closes the comms of two ends and gives their queue pairs to two others.
func laneAgain(t *testing.T, tx, rx *laneSide) {
	t.Helper()
	sides := []*laneSide{tx, rx}
	for i, s := range sides {
		if err := s.comm.Close(); err != nil {
			t.Fatal(err)
		}
		for l := range s.plan.Lanes {
			s.plan.Lanes[l].RecvPosted = s.plan.Lanes[l].RecvDepth - fastpath.ReceivesDue(s.comm, l)
		}
		fastpath.DetachVerbs(s.comm)
		s.comm.Free()
		s.comm = must(fastpath.New(fastpath.Options{Kind: []fastpath.Kind{fastpath.Send, fastpath.Recv}[i], Device: 300, Cookie: uint64(i)}))
		addr, size := s.comm.Shared()
		for d := range 2 {
			if err := s.regions[2*d].Release(); err != nil {
				t.Fatal(err)
			}
			shared := must(s.pds[d].Register(hostMemory(t, addr, size), ibv.AccessCTS))
			s.regions[2*d], s.plan.Keys[d] = shared, fastpath.Keys{LKey: shared.LKey, RKey: shared.RKey}
		}
		s.plan.PeerKeys = nil
	}
	for i, s := range sides {
		s.learn(sides[1-i])
		for d := range 2 {
			if err := settleOn(t, s, d); err != nil {
				t.Fatal(err)
			}
		}
		if err := fastpath.AttachVerbs(s.comm, &s.plan); err != nil {
			t.Fatal(err)
		}
		s.handle = s.comm.Open()
	}
}

// settleOn settles the lanes on a device, whose peers are on the other.
func settleOn(t *testing.T, s *laneSide, d int) error {
	from, to := must(s.pds[d].Scratch()), must(s.pds[1-d].Scratch())
	defer from.Release()
	defer to.Release()
	var all []qp.Proof
	for l, q := range s.qps {
		if l%2 == d {
			all = append(all, qp.Proof{QP: q, From: from, Addr: mr.ScratchAddr(), RKey: to.RKey})
		}
	}
	return qp.Prove(t.Context(), time.Second, s.cqs[d], all...)
}

// laneBurst moves messages whose receives are all posted before the first is sent.
func laneBurst(t *testing.T, tx, rx *laneSide, n int) {
	t.Helper()
	const size = 3000
	var reqs []uintptr
	for i := range n {
		r, rc := hostcalls.Irecv(rx.handle, rx.buf(i*size, size, 0))
		if rc != 0 || r == 0 {
			t.Fatalf("irecv returned %#x, %d: %+v", r, rc, hostcalls.LastFault())
		}
		reqs = append(reqs, r)
	}
	for i := range n {
		s, rc := hostcalls.Send(t, tx.handle, tx.buf(i*size, size, 0))
		if rc != 0 {
			t.Fatalf("isend returned %d: %+v", rc, hostcalls.LastFault())
		}
		reqs = append(reqs, s)
	}
	if _, rc := hostcalls.Finish(t, reqs...); rc != 0 || !bytes.Equal(tx.mem[:n*size], rx.mem[:n*size]) {
		t.Fatalf("code %d, %+v", rc, hostcalls.LastFault())
	}
	clear(rx.mem[:n*size])
}

// Queue pairs carry one comm after the other, whatever the one before has left
// in their queues.
func TestLaneCarriesOneCommAfterAnother(t *testing.T) {
	for _, c := range laneConfigs {
		t.Run(c.name(), func(t *testing.T) {
			tx, rx := laneConnected(t, laneProvider(t), c)
			random := rand.New(rand.NewSource(1))
			random.Read(tx.mem)
			for round := range 12 {
				for range 1 + random.Intn(20) {
					tx.pass(t, rx, 1+random.Intn(1<<(4+round)))
				}
				laneBurst(t, tx, rx, 24)
				laneAgain(t, tx, rx)
			}
		})
	}
}

// What does not work any more, or took in something, is not settled.
func TestSettleRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(t *testing.T, tx, rx *laneSide)
		says  string
		rx    bool // the other end is asked
	}{
		"a queue pair in an error":   {func(t *testing.T, tx, _ *laneSide) { must(0, tx.qps[2].Fence()) }, "WR_FLUSH_ERR", false},
		"its peer in an error":       {func(t *testing.T, _, rx *laneSide) { must(0, rx.qps[2].Fence()) }, "", false},
		"packets that do not arrive": {func(t *testing.T, _, _ *laneSide) { blackhole(t) }, "no acknowledgement", false},
		"a message that nobody took": {func(t *testing.T, tx, rx *laneSide) {
			in, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 100, 0))
			hostcalls.Test(in)
			if _, rc := hostcalls.Send(t, tx.handle, tx.buf(0, 100, 0)); rc != 0 {
				t.Fatal(rc)
			}
		}, "received something", true},
	} {
		t.Run(what, func(t *testing.T) {
			tx, rx := laneConnected(t, laneProvider(t), laneConfig{lanes: 4, width: 4, stripeMin: 4096, depth: 16, inline: 64})
			tx.pass(t, rx, 100_000)
			c.spoil(t, tx, rx)
			if c.rx {
				tx = rx
			}
			if err := settleOn(t, tx, 0); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func blackhole(t *testing.T) {
	command(t, "blackhole simB both")
	t.Cleanup(func() { command(t, "blackhole simB off") })
}
