package faults

import (
	"fmt"
	"testing"

	"weft/internal/host"
)

// TestCloseInFlight closes and ends the process as soon as the last send is done,
// each way of leaving: every byte arrives, whatever was still on its way.
func TestCloseInFlight(t *testing.T) {
	for _, version := range []int{4, newest} {
		for _, how := range []string{"exit", "return", "_exit"} {
			t.Run(fmt.Sprintf("v%d_%s", version, how), func(t *testing.T) {
				t.Parallel()
				closeInFlight(t, start(t, "sender", version), start(t, "receiver", version), how)
			})
		}
	}
}

func closeInFlight(t *testing.T, tx, rx *peer, how string) {
	t.Helper()
	const total = 64 << 20
	c := join(tx, rx, total)
	f := traffic{size: 1 << 20, count: 64, window: 64}
	r, s := c.receiving(f), c.sending(f)
	_, err := s.Wait()
	must(t, err, "sender")
	must(t, c.tx.n.CloseSend(c.send), "closeSend")
	must(t, c.tx.h.Exit(how, 0), "end of the sender's process")
	arrived(t, r)
}

// TestCloseBeforeTheyRead has the receiver post its receives and then do nothing
// until the sender, done with all, has closed and gone.
func TestCloseBeforeTheyRead(t *testing.T) {
	for _, how := range []string{"exit", "_exit"} {
		for _, size := range []int64{100, 5000, 100_000} {
			t.Run(fmt.Sprintf("%s_%d", how, size), func(t *testing.T) {
				t.Parallel()
				closeUnread(t, start(t, "sender", newest), start(t, "receiver", newest), how, size)
			})
		}
	}
}

// closeUnread posts receives, has everything sent, and looks only when the sender has gone.
func closeUnread(t *testing.T, tx, rx *peer, how string, size int64) {
	t.Helper()
	const n = 4
	c := join(tx, rx, n*size)
	must(t, tx.h.Fill(c.a, n*size, 3), "fill")
	var reqs []host.Ptr
	for i := range int64(n) {
		q, err := rx.n.Irecv(c.recv, []host.Recv{{Data: c.b + host.Ptr(i*size), Size: size, Tag: 1, MH: c.bmh}}, "poll", 1)
		must(t, err, "irecv")
		reqs = append(reqs, q)
	}
	// One empty test lets the credits out; nothing has been sent yet.
	if done, _, err := rx.n.Test(reqs[0], 1); err != nil || done {
		t.Fatalf("test before any send: done %v, %v", done, err)
	}
	for i := range int64(n) {
		r, err := tx.h.Call(tx.n.Data, "net.isend", host.Args{"on", tx.n.As, "comm", c.send, "data", c.a + host.Ptr(i*size), "size", size, "tag", 1, "mh", c.amh, "poll", 1})
		must(t, err, "isend")
		_, err = tx.n.Wait(r.Ptr("req"), 1, patience)
		must(t, err, "send while the receiver does nothing")
	}
	must(t, tx.n.CloseSend(c.send), "closeSend")
	must(t, tx.h.Exit(how, 0), "end of the sender's process")
	for _, q := range reqs {
		_, err := rx.n.Wait(q, 1, patience)
		must(t, err, "receive from a sender that has left")
	}
	must(t, rx.h.Check(c.b, n*size, 3), "bytes of a sender that has left")
}

// TestAbandoned gives up connects and listens in every half-made state: after the
// deadlines the process holds as many descriptors as before.
func TestAbandoned(t *testing.T) {
	a, b := start(t, "connecting", newest, "WEFT_TIMEOUT=1", "WEFT_CONNECT_TIMEOUT=1"), start(t, "listening", newest, "WEFT_TIMEOUT=1")
	join(a, b, 1000).move(traffic{size: 1000, count: 1, window: 1})
	_, keep := b.listen() // so that the rendezvous socket stays
	defer b.n.CloseListen(keep)
	before := [2]int{fds(t, a), fds(t, b)}
	for i := range 30 {
		handle, lc := b.listen()
		at := a.put(handle)
		for range i % 4 { // 0: never connected
			_, err := a.n.Connect(0, at)
			must(t, err, "connect")
		}
		must(t, a.h.Free(at), "free of the handle")
		if i%3 != 0 {
			must(t, b.n.CloseListen(lc), "closeListen")
		}
	}
	must(t, a.n.Finalize(), "finalize")
	must(t, b.n.CloseListen(keep), "closeListen")
	must(t, b.n.Finalize(), "finalize")
	for i, p := range []*peer{a, b} {
		settle(t, fmt.Sprintf("descriptors of the %s side: %d before", []string{"connecting", "listening"}[i], before[i]), func() (string, bool) {
			n := fds(t, p)
			return fmt.Sprintf("%d now", n), n <= before[i]
		})
	}
}
