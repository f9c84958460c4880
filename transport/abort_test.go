package transport

import (
	"testing"

	"weft/internal/report"
)

// A host that aborts is told of once, and by no WARN where nobody waits.
func TestSimAbort(t *testing.T) {
	a, b := startSim(t, "=simA", nil), startSim(t, "=simB", nil)
	// a gives up two connections in whose memory it receives; b asks nothing of them.
	for range 2 {
		s, r := pair(t, b, a)
		to := register(t, r, buffer(t, 4096), 4096)
		in := recv(r, to)
		eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
		if err := r.DeregMr(to.Handle); err != nil {
			t.Fatal(err)
		}
		drive(t, "the receive", in)
		eventually(t, "the peer hears of it", s.Over)
	}
	if n := a.log.Count("INFO", "deregMr", "the host gave up what was in flight"); n != 2 {
		t.Errorf("the host that gave up says so %d times: %q", n, a.log.Lines())
	}
	if n := b.log.Count("INFO", "gave the connection up with requests in flight"); n != 2 {
		t.Errorf("its peer says so %d times: %q", n, b.log.Lines())
	}
	if n := a.log.Count("WARN") + b.log.Count("WARN"); n != 0 {
		t.Errorf("%d warnings: %q %q", n, a.log.Lines(), b.log.Lines())
	}
	// It closes two for which b waits.
	var waiting []*transfer
	var closing []*Comm
	for range 2 {
		s, r := pair(t, a, b)
		in := recv(r, register(t, r, buffer(t, 4096), 4096))
		eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
		waiting, closing = append(waiting, in), append(closing, s)
	}
	for _, s := range closing {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	drive(t, "the receives", waiting...)
	for _, in := range waiting {
		if in.code != 100+int32(report.Peer) {
			t.Errorf("code %d", in.code)
		}
	}
	const line = "the peer closed the connection while 1 receives"
	if w, i := b.log.Count("WARN irecv", line), b.log.Count("INFO", "irecv", line); w != 1 || i != 1 {
		t.Errorf("%d warnings and %d others: %q", w, i, b.log.Lines())
	}
}
