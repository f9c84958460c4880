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
	for i := range 8 {
		sends, devices := i&1 == 0, 1+i>>1&1 // the survivor; devices in one
		at := []int{3, lanes}[i>>2]          // queue pairs of the connecting side, or all of them: then the listening side is at it
		t.Run(fmt.Sprintf("survivor_sends_%v_devices_%d_at_%d", sends, devices, at), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			if devices > 1 {
				w.Devices = append(w.Devices, simverbs.Device{Name: "simA2", Node: "simA", GIDs: []string{"10.9.2.1/24"}}, simverbs.Device{Name: "simB2", Node: "simB", GIDs: []string{"10.9.2.2/24"}})
			}
			env := []string{"WEFT_TIMEOUT=4", fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", lanes/devices), "WEFT_LAZY=demand"}
			begin := func(name string) *peer {
				p := w.begin(name, env...)
				if devices > 1 {
					_, err := p.fuse(0, 1)
					must(t, err, "makeVDevice")
				}
				return p
			}
			victim, survivor := begin("victim"), begin("survivor")
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
			third := begin("third")
			join(third, survivor, 16384).move(traffic{size: 4096, count: 3, window: 2})
			if byRDMA(third, 0) != 1 {
				t.Errorf("the next comm is not by RDMA: %q", said(third, 0))
			}
		})
	}
}
