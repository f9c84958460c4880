package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestRequestsFail has the n-th work request of a connection's life complete in error,
// on either side: both sides' comms end with an error, or the comm goes over TCP;
// one line says the status, what the request was, where, and the likely causes;
// nothing is left and the next connection runs over RDMA.
func TestRequestsFail(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"simA", "simB"} {
		for _, status := range []string{"LOC_PROT_ERR", "WR_FLUSH_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR placed", "GENERAL_ERR placed"} {
			t.Run(side+"_"+strings.ReplaceAll(status, " ", "_"), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simverbs.Device{}, simverbs.Device{})
				b := w.bond("WEFT_TIMEOUT=4", "WEFT_FLUSH=always", "NCCL_IB_QPS_PER_CONNECTION=2")
				s := &sweep{bond: b, t: t, victim: b.tx, side: side}
				if side == "simB" {
					s.victim = b.rx
				}
				s.healthy("at first")
				places := 0
				for _, n := range []int{1, 2, 3, 5, 7, 10} {
					if s.request(n, status) {
						places++
					}
				}
				if places < 3 {
					t.Errorf("only %d requests could fail", places)
				}
				t.Logf("failed at %d places", places)
			})
		}
	}
}

// request makes the n-th request fail during one life; false: there is no n-th, or
// it concerns nobody, as a probe of the path does.
func (s *sweep) request(n int, status string) bool {
	s.t.Helper()
	w, what, marks := s.w, fmt.Sprintf("request %d on %s ends %s", n, s.side, status), map[*end]int{s.tx: marked(s.tx.peer), s.rx: marked(s.rx.peer)}
	name, placed, _ := strings.Cut(status, " ")
	w.command(s.victim.peer, fmt.Sprintf("error %s/%s %d %s", s.side, s.side, n, status))
	errs := s.life(sweepLimit)
	failed := map[string]bool{}
	for _, e := range errs {
		if stuck(e) {
			s.t.Fatalf("%s: %v", what, e)
		}
		if c := host.Code(e); c != host.SystemError && c != host.RemoteError {
			s.t.Errorf("%s: %v", what, e)
		}
		failed[e.what] = true
	}
	w.command(s.victim.peer, fmt.Sprintf("error %s/%s 0 %s", s.side, s.side, name))
	if len(errs) == 0 && byRDMA(s.tx.peer, marks[s.tx]) == 1 && byRDMA(s.rx.peer, marks[s.rx]) == 1 {
		return false
	}
	// What arrived although its completion says otherwise is no error of the receiving side.
	if failed["send"] != failed["receive"] && placed == "" {
		s.t.Errorf("%s: only one side knows: %v", what, errs)
	}
	s.said(what, errs, marks, func(l string) bool {
		return strings.Contains(l, "ended "+name) && strings.Contains(l, s.side) && strings.Contains(l, "QP ") && strings.Contains(l, "; likely, in this order: ")
	})
	s.healthy(what)
	return true
}
