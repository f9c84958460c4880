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
				ranks = append(ranks, w.start(d.Name, newest, env...))
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

// TestManyQueuePairs has connections of one queue pair and of as many as can be asked for, which is more than are used,
// carry messages below and above what is cut over all of them, with and without the cutting, several at a time.
func TestManyQueuePairs(t *testing.T) {
	t.Parallel()
	for asked, lanes := range map[int]int{1: 1, 128: 32} {
		for _, split := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d_split_%d", asked, split), func(t *testing.T) {
				w := newWorld(t, simverbs.Device{}, simverbs.Device{})
				env := []string{fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", asked), fmt.Sprintf("NCCL_IB_SPLIT_DATA_ON_QPS=%d", split), "WEFT_STRIPE_MIN=4096", "WEFT_LAZY=off"}
				tx, rx := w.start("simA", newest, env...), w.start("simB", newest, env...)
				var conns []*conn
				for i := range 4 {
					c := join(tx, rx, 16<<20)
					c.name = fmt.Sprintf("-%d", i)
					conns = append(conns, c)
				}
				if o := w.count(tx); o.QPs < 4*lanes {
					t.Errorf("%d queue pairs for 4 connections: %q", o.QPs, said(tx, 0))
				}
				for _, f := range []traffic{
					{size: 0, count: 10, window: 4}, {size: 1, count: 300, window: 32}, {size: 4095, count: 300, window: 16}, {size: 4096, count: 100, window: 16},
					{size: 4097, count: 100, window: 16}, {size: 4096*32 - 1, count: 20, window: 4}, {size: 4096*32 + 1, count: 20, window: 4}, {size: 16 << 20, count: 1, window: 1},
				} {
					var sends, recvs []*host.Pending
					for _, c := range conns {
						recvs, sends = append(recvs, c.receiving(f)), append(sends, c.sending(f))
					}
					for i, c := range conns {
						_, err := sends[i].Wait()
						must(t, err, fmt.Sprintf("sender%s of %d bytes", c.name, f.size))
						arrived(t, recvs[i])
					}
				}
				for _, c := range conns {
					must(t, c.tx.n.CloseSend(c.send), "closeSend")
					must(t, c.rx.n.CloseRecv(c.recv), "closeRecv")
				}
				for _, p := range []*peer{tx, rx} {
					w.atRest(p, simverbs.Objects{}, "after 4 connections")
				}
			})
		}
	}
}
