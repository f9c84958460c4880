package nccl

import (
	"testing"

	"weft/internal/build"
	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// TestTrace has weft itself be the profiler of an all-reduce and an all-to-all: of every release that has profilers it
// records what NCCL reports, whole and under the right parents, and every message with its two ends.
func TestTrace(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if r.Since(2, 26) && !r.Since(2, 27) {
			t.Skipf("%s hangs in ncclCommDestroy when there is a profiler, over its own sockets too", r)
		}
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
			if !r.Since(2, 23) {
				continue // no profilers
			}
			for _, p := range job.Processes {
				var of [format.Types]int
				for _, e := range p.Events {
					of[e.Type]++
					if e.Stop == model.Never {
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
