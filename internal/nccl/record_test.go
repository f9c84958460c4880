package nccl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/internal/build"
)

var update = flag.Bool("update", false, "write what was recorded as the golden data of the releases")

// recorded compares what a plugin has written down with the release's golden data: the lines that came, in order of their text.
func recorded(t *testing.T, r Release, of, log string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	golden := filepath.Join("testdata", of, r.String()+".txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v: nobody has recorded %s yet: go test ./internal/nccl -run %s -update", err, r, t.Name())
	}
	if got != string(want) {
		t.Errorf("%s differs; now:\n%s", golden, got)
	}
}

// TestCollNet has NCCL reduce through a collNet, in a chain to each host's rank, and keeps what it asks of that.
func TestCollNet(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 22) || r.Since(2, 29) {
			t.Skipf("%s finds no chain of CollNet here, or it is not played", r)
		}
		plugin, err := build.Plugin("internal/nccl/testdata/collnet.c", "-ldl")
		if err != nil {
			t.Fatal(err)
		}
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(t.TempDir(), "collnet.log")
		run := start(t, Job{Release: r, Network: tcp(t, r), Ranks: 3, Env: []string{
			"NCCL_NET_PLUGIN=" + plugin, "COLLNET_NET=" + lib, "COLLNET_LOG=" + log,
			"NCCL_COLLNET_ENABLE=1", "NCCL_ALGO=CollNetChain", "NCCL_PROTO=Simple", "SIMGPU_TRACE_KERNELS=1",
		}}, "sizes", "ops=allreduce", "max=256K", "step=32", "rounds=1")
		if err := run.Wait(); err != nil {
			t.Fatal(err)
		}
		if said := run.Ranks[0].Said(); !strings.Contains(said, fmt.Sprintf("algorithm %d", collNetChain)) {
			t.Errorf("no chain was played:\n%s", said)
		}
		recorded(t, r, "collnet", log)
	})
}

const collNetChain = 3 // NCCL_ALGO_COLLNET_CHAIN

// TestProfiler keeps the lives of the events that NCCL reports for an all-reduce and an all-to-all, over TCP and RDMA: what
// encloses them, and the numbers of the states that are recorded. Those of weft are told by NCCL from 2.26 on.
func TestProfiler(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 23) {
			t.Skipf("%s has no profilers", r)
		}
		if r.Since(2, 26) && !r.Since(2, 27) {
			t.Skipf("%s hangs in ncclCommDestroy when there is a profiler, over its own sockets too", r)
		}
		plugin, err := build.Plugin("internal/nccl/testdata/profiler.c")
		if err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(t.TempDir(), "profiler.log")
		for _, network := range []Network{tcp(t, r), rdma(t, 1)} {
			run := start(t, Job{Release: r, Network: network, Ranks: 3, Env: []string{
				"NCCL_PROFILER_PLUGIN=" + plugin, "PROFILER_LOG=" + log, "NCCL_ALGO=Ring", "NCCL_PROTO=Simple",
			}}, "sizes", "ops=allreduce,alltoall", "min=1M", "max=1M", "rounds=2")
			if err := run.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		recorded(t, r, "profiler", log)
	})
}

// TestProfilerOfCollectives has a profiler that wants neither proxy steps nor net events, as NCCL's inspector: 2.27 has no
// handle for those then, and its callback follows what lies in its place.
func TestProfilerOfCollectives(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 23) {
			t.Skipf("%s has no profilers", r)
		}
		if r.Since(2, 26) && !r.Since(2, 27) {
			t.Skipf("%s hangs in ncclCommDestroy when there is a profiler, over its own sockets too", r)
		}
		plugin, err := build.Plugin("internal/nccl/testdata/profiler.c")
		if err != nil {
			t.Fatal(err)
		}
		for _, network := range []Network{tcp(t, r), rdma(t, 1)} {
			log := filepath.Join(t.TempDir(), "profiler.log")
			run := start(t, Job{Release: r, Network: network, Ranks: 3, Env: []string{
				"NCCL_PROFILER_PLUGIN=" + plugin, "PROFILER_LOG=" + log, "PROFILER_MASK=0x42", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple",
			}}, "sizes", "ops=allreduce,alltoall", "min=1M", "max=1M", "rounds=2")
			if err := run.Wait(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(log)
			if err != nil || !strings.Contains(string(text), "Coll in") || strings.Contains(string(text), "ProxyStep") {
				t.Errorf("%v, events:\n%s", err, text)
			}
		}
	})
}
