package tuner

import (
	"math/bits"
	"testing"
	"time"

	"weft/abi"
	"weft/collnet/choose"
)

// All-reduces of an H100's ranks, each a host of its own, over TCP on the loopback device of 16 cores (NCCL 2.28.9, tuner
// table v5; microseconds by what NCCL chooses over weft's net table, and by CollNetChain over its collNet; medians of 3 and 5
// rounds). What was slower is vetoed, and what was clearly faster is allowed, but for what says so.
func TestMeasured(t *testing.T) {
	us := func(n float64) time.Duration { return time.Duration(n * float64(time.Microsecond)) }
	paths := map[int]choose.Path{
		2: {Latency: us(8.4), Gap: us(1), Bandwidth: 3.4e9}, 4: {Latency: us(12.7), Gap: us(11.4), Bandwidth: 2.4e9}, 8: {Latency: us(13.5), Gap: us(17.3), Bandwidth: 1.5e9},
	}
	const tree, ring = abi.NCCL_ALGO_TREE, abi.NCCL_ALGO_RING
	for _, c := range []struct {
		ranks         int
		bytes         int64
		algo          int
		proto         choose.Protocol
		nccl, collNet float64
		missed        bool
	}{
		{2, 8, ring, choose.LL, 25, 54, false},
		{2, 4096, ring, choose.LL, 29, 55, false},
		{2, 16 << 10, ring, choose.LL, 60, 57, true},
		{2, 32 << 10, ring, choose.LL, 85, 60, false},
		{2, 64 << 10, ring, choose.Simple, 115, 82, true},
		{2, 256 << 10, ring, choose.Simple, 184, 262, false},
		{2, 1 << 20, ring, choose.Simple, 447, 832, false},
		{2, 16 << 20, ring, choose.Simple, 5234, 9463, false},
		{4, 8, tree, choose.LL, 52, 90, false},
		{4, 4096, ring, choose.LL, 82, 91, false},
		{4, 16 << 10, ring, choose.LL, 102, 89, false},
		{4, 64 << 10, ring, choose.LL, 236, 150, false},
		{4, 256 << 10, ring, choose.Simple, 410, 486, false},
		{4, 1 << 20, ring, choose.Simple, 959, 1300, false},
		{4, 16 << 20, ring, choose.Simple, 10000, 15600, false},
		{8, 8, tree, choose.LL, 93, 135, false},
		{8, 4096, tree, choose.LL, 117, 140, false},
		{8, 16 << 10, ring, choose.LL, 220, 165, false},
		{8, 64 << 10, ring, choose.LL, 480, 243, false},
		{8, 256 << 10, ring, choose.Simple, 780, 800, false},
		{8, 1 << 20, ring, choose.Simple, 1500, 2230, false},
		{8, 16 << 20, ring, choose.Simple, 12500, 26000, false},
	} {
		v, _ := judge(Model(Comm{Ranks: c.ranks, Nodes: c.ranks, Table: 5}, choose.Fabric{N: c.ranks, Path: paths[c.ranks], Copied: true}))
		got := v[abi.FuncAllReduce][c.algo][c.proto]>>(bits.Len64(uint64(c.bytes))-1)&1 == 0
		if want := c.nccl >= gain*c.collNet && !c.missed; got != want {
			t.Errorf("%d ranks, %d bytes, measured %v and %v us: allowed: %t", c.ranks, c.bytes, c.nccl, c.collNet, got)
		}
	}
}

// The model never allows large all-reduces beside rings, which move no more bytes and compute on the GPU.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		ranks, nodes int
		path         choose.Path
	}{{2, 2, Assumed}, {4, 4, Assumed}, {8, 8, Assumed}, {64, 8, Assumed}, {1024, 128, Assumed}, {8, 8, choose.Path{Latency: 50 * time.Microsecond, Gap: time.Microsecond, Bandwidth: 1e9}}, {8, 8, choose.Path{}}} {
		for table := tableCosts; table <= abi.TunerNewest; table++ {
			expect := Model(Comm{Ranks: c.ranks, Nodes: c.nodes, Table: table}, choose.Fabric{N: c.nodes, Path: c.path, Copied: true})
			if worthOf(expect(abi.FuncAllReduce, 1<<30))[abi.NCCL_ALGO_RING][choose.Simple] {
				t.Errorf("v%d, %d ranks on %d nodes, %s: 1 GiB is allowed", table, c.ranks, c.nodes, Known(c.path, "assumed"))
			}
		}
	}
}
