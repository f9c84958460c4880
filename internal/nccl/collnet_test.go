package nccl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// collectives are the settings with which NCCL reduces through weft's collNet.
var collectives = []string{"WEFT_COLLNET=1", "NCCL_COLLNET_ENABLE=1", "NCCL_ALGO=CollNetChain", "NCCL_PROTO=Simple", "SIMGPU_TRACE_KERNELS=1"}

// chain reports whether a rank has played one of CollNet.
func chain(k *Rank) bool {
	return slices.ContainsFunc(k.all(), func(l string) bool { return strings.Contains(l, fmt.Sprintf("algorithm %d", collNetChain)) })
}

// chained reports whether the release has a chain of CollNet that is played.
func chained(t *testing.T, r Release) {
	t.Helper()
	if !r.Since(2, 22) {
		t.Skipf("%s finds no chain of CollNet here", r)
	}
}

// TestCollectivesOfWeft has NCCL hand its all-reduces to weft, over both networks.
func TestCollectivesOfWeft(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		chained(t, j.Release)
		for _, ranks := range []int{2, 4} {
			t.Run(fmt.Sprint(ranks), func(t *testing.T) {
				j.Ranks, j.Env = ranks, collectives
				run := peacefully(t, j, "sizes", "ops=allreduce", "max=4M", "rounds=1")
				for _, k := range run.Ranks {
					if !chain(run.Ranks[0]) {
						t.Errorf("no chain was played:\n%s", run.Ranks[0].Said())
					}
					if n := ours(t, run, k.Number, "collNet offers"); n["INFO"] != 1 {
						t.Errorf("rank %d: collNet is not offered: %v", k.Number, n)
					}
					if n := ours(t, run, k.Number, fmt.Sprintf("rank %d of %d", k.Number, ranks)); n["INFO"] == 0 {
						t.Errorf("rank %d has no collective comm", k.Number)
					}
					if n := ours(t, run, k.Number, "between nodes, measured)"); (n["INFO"] == 1) != j.Release.Since(2, 28) {
						t.Errorf("rank %d: the tuner knows what was measured: %v", k.Number, n)
					}
				}
			})
		}
	})
}

// TestCollectivesUnwanted: NCCL that asks for a collNet gets none from weft, unless the user wants weft's.
func TestCollectivesUnwanted(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		chained(t, r)
		run := peacefully(t, Job{Release: r, Network: tcp(t, r), Ranks: 2, Env: []string{"NCCL_COLLNET_ENABLE=1", "SIMGPU_TRACE_KERNELS=1"}},
			"sizes", "ops=allreduce", "max=64K", "rounds=1")
		if chain(run.Ranks[0]) {
			t.Errorf("a chain was played:\n%s", run.Ranks[0].Said())
		}
	})
}

// TestCollectivesAmongOthers has weft reduce while communicators come, are split, overlap and go, and while other collectives
// and sends, which go through its net table, are under way.
func TestCollectivesAmongOthers(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		if !j.Release.Since(2, 24) {
			t.Skipf("%s takes no algorithm for one function alone", j.Release)
		}
		j.Env = slices.Concat(collectives, []string{"NCCL_ALGO=Ring;allreduce:CollNetChain"})
		for _, c := range []struct {
			ranks int
			mode  []string
		}{
			{3, []string{"several", "n=3", "rounds=3"}},
			{4, []string{"split"}},
			{3, []string{"storm", "n=4"}},
			{3, []string{"outstanding", "n=8", "size=4M"}},
			{4, []string{"random", "n=150", "seed=5", "type=f16"}},
		} {
			t.Run(c.mode[0], func(t *testing.T) {
				j.Ranks = c.ranks
				if run := peacefully(t, j, c.mode...); !chain(run.Ranks[0]) {
					t.Errorf("no chain was played:\n%s", run.Ranks[0].Said())
				}
			})
		}
	})
}
