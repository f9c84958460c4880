package faults

import (
	"fmt"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestMesh joins four processes, each with each in both directions, and has all of them send to all at once, with
// messages below and above what one request carries: every byte is right, and nothing is left when the comms close.
func TestMesh(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"tcp", "rdma"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			for i, name := range []string{"simC", "simD"} {
				w.Devices = append(w.Devices, simverbs.Device{Name: name, Node: name, GIDs: []string{fmt.Sprintf("10.9.1.%d/24", 3+i)}})
			}
			var ranks []*peer
			for _, d := range w.Devices {
				env := []string{"NCCL_IB_QPS_PER_CONNECTION=2", "NCCL_IB_SPLIT_DATA_ON_QPS=1"}
				if over == "tcp" {
					env = append(env, "NCCL_IB_DISABLE=1")
				}
				ranks = append(ranks, w.start(d.Name, 12, env...))
			}
			var conns []*conn
			for i, a := range ranks {
				for j, b := range ranks {
					if i != j {
						c := join(a, b, 1<<20)
						c.name = fmt.Sprintf("-%d-to-%d", i, j)
						conns = append(conns, c)
					}
				}
			}
			for _, f := range []traffic{{size: 1, count: 200, window: 32}, {size: 8193, count: 100, window: 8}, {size: 300_001, count: 20, window: 3}} {
				var sends, recvs []*host.Pending
				for _, c := range conns {
					recvs, sends = append(recvs, c.receiving(f)), append(sends, c.sending(f))
				}
				for i, c := range conns {
					_, err := sends[i].Wait()
					must(t, err, "sender"+c.name)
					arrived(t, recvs[i])
				}
			}
			for i, p := range ranks {
				if n := byRDMA(p, 0); n != map[string]int{"tcp": 0, "rdma": 2 * (len(ranks) - 1)}[over] {
					t.Errorf("rank %d: %d comms by RDMA: %q", i, n, said(p, 0))
				}
			}
			for _, c := range conns {
				must(t, c.tx.n.CloseSend(c.send), "closeSend")
				must(t, c.rx.n.CloseRecv(c.recv), "closeRecv")
			}
			if over == "rdma" {
				for i, p := range ranks {
					w.atRest(p, simverbs.Objects{}, fmt.Sprint("rank ", i))
				}
			}
		})
	}
}
