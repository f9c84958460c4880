package tuner

import (
	"fmt"
	"time"

	"weft/abi"
	"weft/collnet/choose"
	"weft/collnet/schedule"
)

// Assumed is the path that is taken where all ranks have not agreed on what they
// measured: one whose latency hides few bytes, so that collNet is allowed less.
var Assumed = choose.Path{Latency: 10 * time.Microsecond, Gap: time.Microsecond, Bandwidth: 3e9}

var kinds = map[abi.Func]schedule.Kind{
	abi.FuncAllReduce: schedule.AllReduce, abi.FuncAllGather: schedule.AllGather, abi.FuncReduceScatter: schedule.ReduceScatter,
}

// widths are the bytes of an element and of its sums: a tuner is not told the type.
var widths = [...]struct{ elem, acc int }{{4, 4}, {2, 4}}

// Model expects what collNet's own model does of a communicator on a fabric.
func Model(c Comm, f choose.Fabric) Expect {
	choices := choose.Of(f)
	return func(fn abi.Func, bytes int64) (all []Times) {
		for _, w := range widths {
			op := schedule.Op{Kind: kinds[fn], N: c.Nodes, Count: max(bytes/int64(w.elem), 1), Elem: w.elem, Acc: w.acc}
			if op.Kind != schedule.AllReduce {
				op.Count = max(op.Count/int64(c.Nodes), 1)
			}
			t := Times{CollNet: choices.OffloadTime(op, c.Ranks, c.Nodes, c.Table >= tableChunks)}
			for p := range choose.Protocols {
				t.Otherwise[abi.NCCL_ALGO_RING][p] = choose.RingTime(op, c.Ranks, c.Nodes, f, p)
				t.Otherwise[abi.NCCL_ALGO_TREE][p] = choose.TreeTime(op, c.Ranks, c.Nodes, f, p)
			}
			all = append(all, t)
		}
		return all
	}
}

// Known says from where a path is known.
func Known(p choose.Path, how string) string {
	return fmt.Sprintf("with %v and %.1f GB/s between nodes, %s", p.Latency.Round(100*time.Nanosecond), p.Bandwidth/1e9, how)
}
