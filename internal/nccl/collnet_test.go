package nccl

import (
	"fmt"
	"strings"
	"testing"
)

// collectives are the settings with which NCCL reduces through weft's collNet.
var collectives = []string{"WEFT_COLLNET=1", "NCCL_COLLNET_ENABLE=1", "NCCL_ALGO=CollNetChain", "NCCL_PROTO=Simple", "SIMGPU_TRACE_KERNELS=1"}

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
					if said := run.Ranks[0].Said(); !strings.Contains(said, fmt.Sprintf("algorithm %d", collNetChain)) {
						t.Errorf("no chain was played:\n%s", said)
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
		if said := run.Ranks[0].Said(); strings.Contains(said, fmt.Sprintf("algorithm %d", collNetChain)) {
			t.Errorf("a chain was played:\n%s", said)
		}
	})
}
