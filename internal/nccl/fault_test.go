package nccl

import (
	"syscall"
	"testing"
	"time"
)

// quiet is for runs in which something breaks: releases from 2.19 to 2.24 log each further round of their progress loop.
const quiet = "NCCL_DEBUG=WARN"

// An abort in mid-flight is no fault of the network: every rank gets out, and a new communicator works. Who still waited for
// one that was quicker is warned of it, in one line that names the abort.
func TestAbort(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) { aborted(t, j) })
}

// aborted has all ranks abort in mid-flight, and join again.
func aborted(t *testing.T, j Job) *Run {
	t.Helper()
	if j.Release.Since(2, 23) && !j.Release.Since(2, 26) {
		t.Skipf("%s hangs in ncclCommAbort while operations are under way, over its own sockets too", j.Release)
	}
	j.Env = append([]string{quiet}, j.Env...)
	run := start(t, j, "abort", "absent=1")
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, k := range run.Ranks {
		all, named := ours(t, run, k.Number, ""), ours(t, run, k.Number, "this is an abort")
		if all["WARN"] > named["WARN"] || named["WARN"] > j.Ranks-1 {
			log, err := run.Log(k.Number)
			t.Errorf("rank %d: %d warnings, %d of them of an abort, for %d peers: %v %v", k.Number, all["WARN"], named["WARN"], j.Ranks-1, log, err)
		}
	}
	return run
}

// told requires that NCCL tells a rank of the failure, and that weft has said why, in one line, with one of these texts.
func told(t *testing.T, run *Run, rank int, why ...string) {
	t.Helper()
	end := time.Now()
	if run.Release.mute() {
		end = end.Add(patience)
	} else {
		if _, err := run.Ranks[rank].Says("told after", patience); err != nil {
			t.Fatal(err)
		}
		if err := run.Ranks[rank].End(patience); err != nil {
			t.Error(err)
		}
	}
	for said := 0; said == 0; time.Sleep(100 * time.Millisecond) {
		late := time.Now().After(end)
		for _, w := range why {
			for _, n := range ours(t, run, rank, w) {
				said += n
			}
		}
		if late && said == 0 {
			t.Fatalf("rank %d: no line of weft's says %q", rank, why)
		}
	}
}

// mute: NCCL 2.18, 2.26 and 2.27 tell the program nothing when their network fails, over their own sockets too. What weft says is
// all that there is.
func (r Release) mute() bool {
	return r.Major == 2 && (r.Minor == 18 || r.Minor == 26 || r.Minor == 27)
}

// traffic starts two ranks that move data until something breaks.
func traffic(t *testing.T, j Job, keys ...string) *Run {
	t.Helper()
	j.Ranks = 2
	return trafficOf(t, j, keys...)
}

// trafficOf is traffic of all ranks.
func trafficOf(t *testing.T, j Job, keys ...string) *Run {
	t.Helper()
	j.Env = append([]string{quiet}, j.Env...)
	return start(t, j, append([]string{"traffic", "abort=0"}, keys...)...)
}

func underWay(t *testing.T, run *Run) {
	t.Helper()
	for _, k := range run.Ranks {
		if _, err := k.Says("under way", patience); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRankKilled(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		run := traffic(t, j)
		underWay(t, run)
		if err := run.Ranks[1].Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		told(t, run, 0, "process ended")
	})
}

// A rank that dies while nothing is under way is told with the next operation.
func TestIdleRankKilled(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		run := traffic(t, j, "idle=1")
		for _, k := range run.Ranks {
			if _, err := k.Says("idle", patience); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.Ranks[1].Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := run.Ranks[0].Go(); err != nil {
			t.Fatal(err)
		}
		told(t, run, 0, "process ended")
	})
}

// A stopped rank is no failure, however long it takes. No rank begins the last operation before the test has stopped one.
func TestRankStopped(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		j.Env = []string{"WEFT_TIMEOUT=2"}
		stopped(t, traffic(t, j, "count=300", "size=1M", "idle=300"))
	})
}

// stopped stops a rank for longer than WEFT_TIMEOUT, while others wait for it.
func stopped(t *testing.T, run *Run) {
	t.Helper()
	underWay(t, run)
	if err := run.Network.Stop(run.Ranks[1].Cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for _, k := range run.Ranks {
		if err := k.Go(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(6 * time.Second)
	if err := run.Ranks[1].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, k := range run.Ranks {
		if _, err := k.Says("all operations are done", patience); err != nil {
			t.Error(err)
		}
	}
}

// A link that goes down, or loses everything without a word, is told on both sides.
func TestLinkLost(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		for _, c := range []struct{ name, fault string }{{"down", "link sim0 down"}, {"black hole", "blackhole sim0 both"}} {
			t.Run(c.name, func(t *testing.T) {
				j := Job{Release: r, Network: rdma(t, 1)}
				run := traffic(t, j)
				underWay(t, run)
				if err := j.Network.World.Control(run.Ranks[0].Cmd.Process.Pid, c.fault); err != nil {
					t.Fatal(err)
				}
				for rank := range run.Ranks {
					told(t, run, rank, "sim0")
				}
			})
		}
	})
}
