package nccl

import (
	"slices"
	"syscall"
	"testing"
)

// In faults of a collective, the ranks that are left name the one that is lost, also those that were not waiting for it.

// reducing runs a test over both networks with three ranks whose all-reduces go through weft's collNet.
func reducing(t *testing.T, test func(t *testing.T, j Job)) {
	t.Helper()
	overBoth(t, func(t *testing.T, j Job) {
		chained(t, j.Release)
		j.Env = slices.Clone(collectives)
		test(t, j)
	})
}

func TestCollectivesAborted(t *testing.T) {
	reducing(t, func(t *testing.T, j Job) {
		if run := aborted(t, j); !chain(run.Ranks[0]) {
			t.Errorf("no chain was played:\n%s", run.Ranks[0].Said())
		}
	})
}

func TestCollectivesRankKilled(t *testing.T) {
	reducing(t, func(t *testing.T, j Job) {
		for _, c := range []struct {
			name string
			keys []string
		}{{"under way", nil}, {"idle", []string{"idle=300", "size=64K"}}} {
			t.Run(c.name, func(t *testing.T) {
				run := trafficOf(t, j, c.keys...)
				underWay(t, run)
				if c.keys != nil {
					for _, k := range run.Ranks {
						if _, err := k.Says("idle", patience); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := run.Ranks[1].Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				for _, rank := range []int{0, 2} {
					if c.keys != nil {
						if err := run.Ranks[rank].Go(); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, rank := range []int{0, 2} {
					told(t, run, rank, "lost rank 1 of 3")
					if n := ours(t, run, rank, "lost rank 1 of 3"); n["WARN"] != 1 {
						t.Errorf("rank %d warns %d times", rank, n["WARN"])
					}
				}
				if !chain(run.Ranks[0]) {
					t.Errorf("no chain was played:\n%s", run.Ranks[0].Said())
				}
			})
		}
	})
}

func TestCollectivesRankStopped(t *testing.T) {
	reducing(t, func(t *testing.T, j Job) {
		j.Env = append(j.Env, "WEFT_TIMEOUT=2")
		run := trafficOf(t, j, "count=300", "size=1M", "idle=300")
		stopped(t, run)
		if !chain(run.Ranks[0]) {
			t.Errorf("no chain was played:\n%s", run.Ranks[0].Said())
		}
	})
}
