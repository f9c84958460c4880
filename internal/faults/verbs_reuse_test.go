package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// keep makes a connection that stays, and one whose queue pairs the pool keeps from
// then on; there may be two such.
func (s *sweep) keep() {
	s.t.Helper()
	_, _, ok := s.connect(sweepLimit, func(e *end, what string, err error) bool {
		if err != nil {
			s.t.Error(step{"the connection that stays", what, err})
		}
		return err != nil
	})
	if !ok {
		s.t.FailNow()
	}
	alone := map[*end]simverbs.Objects{}
	for _, e := range []*end{s.tx, s.rx} {
		alone[e] = s.w.count(e.peer)
	}
	for _, e := range s.life(sweepLimit) {
		s.t.Fatal(e)
	}
	for e, was := range alone {
		settle(s.t, "the pool keeps queue pairs", func() (string, bool) {
			o := s.w.count(e.peer)
			s.floor[e] = simverbs.Objects{MRs: was.MRs, CQs: 2*o.CQs - was.CQs + 2, QPs: 2*o.QPs - was.QPs + 2} // probes may come
			return fmt.Sprintf("%+v", o), o.MRs == was.MRs && o.QPs > was.QPs
		})
	}
}

// TestKilledWhileQueuePairsAreKept kills a process when both sides keep the queue pairs
// of closed connections, or have them again: the survivor lets all of them go.
func TestKilledWhileQueuePairsAreKept(t *testing.T) {
	t.Parallel()
	for _, sends := range []bool{true, false} { // the survivor
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprintf("survivor_sends_%v_again_%v", sends, again), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simverbs.Device{}, simverbs.Device{})
				env := []string{"WEFT_TIMEOUT=4", "WEFT_LAZY=off", "NCCL_IB_QPS_PER_CONNECTION=4"}
				victim, survivor := w.begin("victim", env...), w.begin("survivor", env...)
				tx, rx := victim, survivor
				if sends {
					tx, rx = survivor, victim
				}
				stays := join(tx, rx, 1<<20)
				var closed []*conn
				for range 3 {
					c := join(tx, rx, 1<<20)
					c.move(traffic{size: 10_000, count: 5, window: 2})
					closed = append(closed, c)
				}
				open := w.count(survivor)
				for _, c := range closed {
					must(t, c.tx.n.DeregMr(c.send, c.amh), "deregMr")
					must(t, c.rx.n.DeregMr(c.recv, c.bmh), "deregMr")
					must(t, c.tx.n.CloseSend(c.send), "closeSend")
					must(t, c.rx.n.CloseRecv(c.recv), "closeRecv")
				}
				settle(t, "their queue pairs are kept", func() (string, bool) {
					o := w.count(survivor)
					return fmt.Sprintf("%+v, %+v when they were open", o, open), o.QPs >= open.QPs && o.MRs < open.MRs
				})
				mine := map[*conn]bool{stays: true}
				if again {
					c := join(tx, rx, 1<<20)
					c.move(traffic{size: 10_000, count: 5, window: 2})
					if n := strings.Count(strings.Join(said(survivor, 0), "\n"), "of an earlier connection"); n != 1 {
						t.Errorf("they serve %d times: %q", n, said(survivor, 0))
					}
					mine[c] = true
				}
				victim.h.Kill()
				for c := range mine {
					err, end, comm := error(nil), survivor.n.CloseSend, c.send
					if sends {
						err = sendUntil(c)
					} else {
						err, end, comm = receive(c), survivor.n.CloseRecv, c.recv
					}
					if code := host.Code(err); err == nil || stuck(err) || code != host.RemoteError && code != host.SystemError {
						t.Errorf("the survivor: %v", err)
					}
					must(t, end(comm), "close")
				}
				w.atRest(survivor, simverbs.Objects{}, "the survivor's side of a dead process")
				third := w.begin("third", env...)
				join(third, survivor, 16384).move(traffic{size: 4096, count: 3, window: 2})
				if byRDMA(third, 0) != 1 {
					t.Errorf("the next comm is not by RDMA: %q", said(third, 0))
				}
			})
		}
	}
}
