package tuner

import (
	"testing"
	"time"

	"weft/abi"
	"weft/collnet/choose"
)

// What the model allows to communicators of several shapes: if anything, the small
// sizes.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		ranks, nodes int
		path         choose.Path
	}{{2, 2, Assumed}, {4, 4, Assumed}, {8, 8, Assumed}, {64, 8, Assumed}, {1024, 128, Assumed}, {8, 8, choose.Path{Latency: 50 * time.Microsecond, Gap: time.Microsecond, Bandwidth: 1e9}}, {8, 8, choose.Path{}}} {
		expect := Model(Comm{Ranks: c.ranks, Nodes: c.nodes}, choose.Fabric{N: c.nodes, Path: c.path})
		v, text := judge(expect)
		t.Logf("%d ranks on %d nodes, %s: %s", c.ranks, c.nodes, Known(c.path, "assumed"), text)
		for _, col := range collectives {
			for k, before := 0, true; k < 64; k++ {
				allowed := v[col.f][abi.NCCL_ALGO_COLLNET_CHAIN]>>k&1 == 0
				if allowed && !before {
					t.Errorf("%d ranks on %d nodes: %s is allowed from 2^%d bytes, and not below: %s", c.ranks, c.nodes, col.name, k, text)
				}
				before = allowed
			}
		}
	}
}
