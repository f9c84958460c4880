package nccl

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/internal/trace/processor"
	"weft/internal/trace/stall"
	"weft/transport/record/format"
)

// TestTrace has weft itself be the profiler of an all-reduce and an all-to-all: of every release that has profilers it
// records what NCCL reports, whole and under the right parents, and every message with its two ends.
func TestTrace(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		const ranks = 3
		for _, network := range []Network{tcp(t, r), rdma(t, 1)} {
			dir := t.TempDir()
			run := start(t, Job{Release: r, Network: network, Ranks: ranks, Env: []string{
				"WEFT_PROFILE=trace", "WEFT_PROFILE_DIR=" + dir, "NCCL_PROFILER_PLUGIN=" + lib, "NCCL_ALGO=Ring", "NCCL_PROTO=Simple",
			}}, "sizes", "ops=allreduce,alltoall", "min=1M", "max=1M", "rounds=2")
			if err := run.Wait(); err != nil {
				t.Fatal(err)
			}
			files, bad, err := trace.Load([]string{dir})
			if err != nil || len(bad) != 0 || len(files) != ranks {
				t.Fatalf("%d files, %v %v", len(files), err, bad)
			}
			for _, f := range files {
				if f.Loss != (trace.Loss{}) || len(f.Notes) != 0 {
					t.Errorf("lost %+v, notes %q", f.Loss, f.Notes)
				}
			}
			job := model.New(files)
			messages := 0
			for _, c := range job.Connections {
				messages += len(c.Pairs)
				if c.Unmatched != 0 {
					t.Errorf("%d messages of %s without their other end", c.Unmatched, c.Sender.Device)
				}
			}
			if messages == 0 {
				t.Errorf("no messages; notes %q", job.Notes)
			}
			if !r.Since(2, 23) || r.Since(2, 26) && !r.Since(2, 27) {
				continue // no profilers, or one that is asked for no events: 2.26 would hang in ncclCommDestroy
			}
			for _, p := range job.Processes {
				var of [format.Types]int
				for _, e := range p.Events {
					of[e.Type]++
					// 2.24 loses the handles of some steps, over its own sockets too.
					if e.Stop == model.Never && (e.Type != format.ProxyStep || r.Since(2, 26)) {
						t.Errorf("a %s was not stopped", e.TypeName())
					}
					if e.Parent != 0 && e.Up == nil {
						t.Errorf("a %s has no parent", e.TypeName())
					}
				}
				if of[format.Coll] == 0 || of[format.ProxyOp] == 0 || of[format.ProxyStep] == 0 || p.Orphans() != 0 || r.Since(2, 27) && of[format.NetPlugin] == 0 {
					t.Errorf("events by type %v, %d calls about none", of, p.Orphans())
				}
			}
			if r.Since(2, 27) && (len(job.Communicators) != 1 || len(job.Communicators[0].Comms) != ranks) {
				t.Errorf("communicators %+v", job.Communicators)
			}
		}
	})
}

// TestTraceInRealReader has eight ranks record themselves, and Perfetto's own reader find in the merged trace what the model has.
func TestTraceInRealReader(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if processor.Path() == "" {
			t.Skip("WEFT_TEST_TRACE_PROCESSOR names no trace_processor_shell of Perfetto")
		}
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		const ranks = 8
		for _, network := range []Network{tcp(t, r), rdma(t, 1)} {
			dir := t.TempDir()
			run := start(t, Job{Release: r, Network: network, Ranks: ranks, Env: []string{
				"WEFT_PROFILE=trace", "WEFT_PROFILE_DIR=" + dir, "NCCL_PROFILER_PLUGIN=" + lib,
			}}, "sizes", "ops=allreduce,alltoall", "min=64K", "max=1M", "rounds=2")
			if err := run.Wait(); err != nil {
				t.Fatal(err)
			}
			files, bad, err := trace.Load([]string{dir})
			if err != nil || len(bad) != 0 || len(files) != ranks {
				t.Fatalf("%d files, %v %v", len(files), err, bad)
			}
			if processor.Check(t, model.New(files)) == 0 {
				t.Error("no arrow from a send to a receive")
			}
		}
	})
}

// TestStall stops one rank of three and has it named as what the others wait for, while the job stands still, and afterwards,
// when all have been killed.
func TestStall(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		const ranks = 3
		for i, network := range []Network{tcp(t, r), rdma(t, 1)} {
			dir, stopped := t.TempDir(), (i+1)%ranks
			run := start(t, Job{Release: r, Network: network, Ranks: ranks, Env: []string{
				quiet, "WEFT_PROFILE=trace", "WEFT_PROFILE_DIR=" + dir, "NCCL_ALGO=Ring", "NCCL_PROTO=Simple",
			}}, "traffic", "ops=allreduce", "size=1M")
			underWay(t, run)
			if w := waits(t, dir); len(w.Causes) != 0 {
				t.Errorf("a job that goes on: %+v", w.Causes)
			}
			victim := run.Ranks[stopped].Cmd.Process
			if err := network.Stop(victim.Pid); err != nil {
				t.Fatal(err)
			}
			named(t, dir, victim.Pid, "is stopped")
			time.Sleep(4 * time.Second) // so long that its file shows that it stood still while the others ran
			for _, k := range run.Ranks {
				if err := k.Cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
			for _, k := range run.Ranks {
				k.End(patience) // with an error
			}
			named(t, dir, victim.Pid, "before the others' last sign of life")
		}
	})
}

// TestStallIsSaid stops one rank of three: each other says, in NCCL's log and while the job stands still, that it waits for that
// one, at first hand or in the end, and that it goes on when the rank does.
func TestStallIsSaid(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		j.Env = []string{quiet, "WEFT_PROFILE=stall", "WEFT_STALL_SECONDS=2", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple"}
		run := start(t, j, "traffic", "ops=allreduce", "size=1M")
		underWay(t, run)
		victim := run.Ranks[1]
		if err := j.Network.Stop(victim.Cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		named := fmt.Sprintf(":%d ", victim.Cmd.Process.Pid)
		for _, k := range run.Ranks {
			if k != victim {
				says(t, run, k.Number, named, "does not reply, though its machine does")
			}
		}
		if err := victim.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for _, k := range run.Ranks {
			if k != victim {
				says(t, run, k.Number, "moves again, after")
			}
		}
		if n := ours(t, run, victim.Number, "stall: "); len(n) != 0 {
			t.Errorf("the rank that was stopped says %v", n)
		}
	})
}

// says waits for a line of weft's about a stall, with these parts.
func says(t *testing.T, run *Run, rank int, parts ...string) {
	t.Helper()
	var all []Line
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second / 4) {
		var err error
		if all, err = run.Log(rank); err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.Ours() && strings.Contains(l.Text, "stall: ") && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(l.Text, p) }) {
				return
			}
		}
	}
	t.Errorf("rank %d has not said %q: %v", rank, parts, all)
}

// A run in which nothing stands still says nothing.
func TestNoStallInPeace(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		j.Env = []string{"WEFT_PROFILE=stall"}
		peacefully(t, j, "sizes", "ops=allreduce,alltoall", "min=8", "max=4M", "rounds=2")
	})
}

func waits(t *testing.T, dir string) *stall.Report {
	t.Helper()
	look := stall.Here("/proc")
	files, bad, err := trace.Load([]string{dir})
	if err != nil || len(bad) != 0 {
		t.Fatal(err, bad)
	}
	return stall.New(model.New(files), look, time.Second)
}

// named waits until the process is the one cause, for a reason that has this text.
func named(t *testing.T, dir string, pid int, why string) {
	t.Helper()
	var r *stall.Report
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second / 4) {
		r = waits(t, dir)
		if len(r.Causes) == 1 && strings.Contains(r.Causes[0].What, fmt.Sprintf(":%d", pid)) &&
			slices.ContainsFunc(r.Causes[0].Evidence, func(e string) bool { return strings.Contains(e, why) }) {
			return
		}
	}
	t.Errorf("process %d is not named for %q: %+v\nwaits %+v", pid, why, r.Causes, r.Waits)
}
