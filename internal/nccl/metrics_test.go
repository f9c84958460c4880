package nccl

import (
	"fmt"
	"testing"

	"weft/internal/build"
	"weft/internal/metrics"
)

// TestMetrics has what the two ends of a job's links counted be the same: messages and bytes, each with its time. Ranks
// are known where the release says them.
func TestMetrics(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		const ranks = 2
		for _, network := range []Network{tcp(t, r), rdma(t, 1)} {
			dir := t.TempDir()
			run := start(t, Job{Release: r, Network: network, Ranks: ranks, Env: []string{
				"WEFT_PROFILE=metrics", "WEFT_PROFILE_DIR=" + dir, "NCCL_PROFILER_PLUGIN=" + lib,
			}}, "sizes", "ops=allreduce,alltoall", "min=8", "max=1M", "rounds=2")
			if err := run.Wait(); err != nil {
				t.Fatal(err)
			}
			files, bad, err := metrics.Load([]string{dir})
			if err != nil || len(bad) != 0 || len(files) != ranks {
				t.Fatalf("%d files, %v %v", len(files), err, bad)
			}
			sent, received := map[string]metrics.Counts{}, map[string]metrics.Counts{}
			known := map[int]bool{}
			for _, f := range files {
				if f.Ranks == ranks {
					known[f.Rank] = true
				}
				for _, s := range f.Sums() {
					c := &s.Counts
					if c.Timed() != c.Messages || c.Failed != 0 || c.Broken != 0 {
						t.Errorf("%+v: %d messages, %d with a time, %d failed", s.Key, c.Messages, c.Timed(), c.Failed)
					}
					if c.Closed == 0 || s.Connections != 0 {
						t.Errorf("%+v: %d connections are open, %d closed, of a job that has ended", s.Key, s.Connections, c.Closed)
					}
					of, link := received, fmt.Sprintf("%d %s to %d %s", s.PeerPID, s.PeerDevice, f.PID, s.Device)
					if s.Sends {
						of, link = sent, fmt.Sprintf("%d %s to %d %s", f.PID, s.Device, s.PeerPID, s.PeerDevice)
					}
					sum := of[link]
					sum.Add(c)
					of[link] = sum
				}
			}
			if len(sent) == 0 || len(sent) != len(received) {
				t.Errorf("%d links send, %d receive", len(sent), len(received))
			}
			for link, s := range sent {
				if o := received[link]; s.Messages != o.Messages || s.Bytes != o.Bytes || s.Messages == 0 {
					t.Errorf("%s: %d messages of %d bytes sent, %d of %d received", link, s.Messages, s.Bytes, o.Messages, o.Bytes)
				}
			}
			if r.Since(2, 27) && len(known) != ranks {
				t.Errorf("ranks %v", known)
			}
		}
	})
}
