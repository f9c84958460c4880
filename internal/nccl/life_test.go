package nccl

import (
	"fmt"
	"testing"
	"time"
)

func TestSeveralCommunicators(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) { peacefully(t, j, "several", "n=3", "rounds=3") })
}

// Ranks as threads of one process: one library, and connections from the process to itself.
func TestThreads(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		j.Threads = true
		peacefully(t, j, "threads")
	})
}

func TestSplit(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		if !j.Release.Since(2, 18) {
			t.Skipf("%s splits no communicators", j.Release)
		}
		j.Ranks = 4
		peacefully(t, j, "split")
	})
}

// Communicators come and go: what NCCL ends with the last one, and loads again with the next, differs from release to
// release. (2.28.3 finalizes a collNet that it does not have.)
func TestTeardown(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) { peacefully(t, j, "storm", "n=4") })
}

// Destroying a communicator waits for its operations.
func TestDestroyWithWorkOutstanding(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		if j.Release.Since(2, 9) && !j.Release.Since(2, 13) {
			t.Skipf("%s ends its proxy before the operations have ended, over its own sockets too", j.Release)
		}
		peacefully(t, j, "outstanding", "n=8", "size=4M")
	})
}

// Two to eight ranks, as processes and as threads of one.
func TestNumbersOfRanks(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		j.Limit = 15 * time.Minute
		for j.Ranks = 2; j.Ranks <= 8; j.Ranks++ {
			t.Run(fmt.Sprintf("%d processes", j.Ranks), func(t *testing.T) { peacefully(t, j, "sizes", "max=512K", "step=256", "rounds=1") })
			t.Run(fmt.Sprintf("%d threads", j.Ranks), func(t *testing.T) {
				threads := j
				threads.Threads = true
				peacefully(t, threads, "threads", "rounds=1")
			})
		}
	})
}

// Many ranks connect to one another at once.
func TestConnectStorm(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		j.Ranks, j.Threads = 6, true
		peacefully(t, j, "threads", "rounds=1")
	})
}
