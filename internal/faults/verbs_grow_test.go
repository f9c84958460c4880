package faults

import (
	"fmt"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestKilledWhileLanesAreAdded kills a process while both sides of a comm make further
// queue pairs, which takes a while here: the survivor's next call ends in an error,
// nothing is left, and the survivor goes on with others.
func TestKilledWhileLanesAreAdded(t *testing.T) {
	t.Parallel()
	const lanes = 8
	for _, sends := range []bool{true, false} { // the survivor
		for _, at := range []int{3, lanes} { // queue pairs of the connecting side, or all of them: then the listening side is at it
			t.Run(fmt.Sprintf("survivor_sends_%v_at_%d", sends, at), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simverbs.Device{}, simverbs.Device{})
				env := []string{"WEFT_TIMEOUT=4", fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", lanes), "WEFT_LAZY=demand"}
				victim, survivor := w.begin("victim", env...), w.begin("survivor", env...)
				tx, rx := victim, survivor
				if sends {
					tx, rx = survivor, victim
				}
				c := join(tx, rx, 1<<20)
				c.move(traffic{size: 1000, count: 3, window: 2})
				for _, p := range []*peer{tx, rx} {
					w.command(p, "slow create_qp 5000", "slow modify_qp 5000")
				}
				c.move(traffic{size: 100_000, count: 3, window: 2})
				settle(t, "queue pairs are made", func() (string, bool) {
					o := w.count(tx)
					return fmt.Sprintf("%+v now", o), o.QPs >= at
				})
				victim.h.Kill()
				mine, end, err := c.send, survivor.n.CloseSend, error(nil)
				if sends {
					err = sendUntil(c)
				} else {
					mine, end = c.recv, survivor.n.CloseRecv
					err = receive(c)
				}
				if err == nil || stuck(err) {
					t.Fatalf("the survivor: %v", err)
				}
				if code := host.Code(err); code != host.RemoteError && code != host.SystemError {
					t.Errorf("the survivor: %v", err)
				}
				must(t, end(mine), "close")
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
