package nccl

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/internal/build"
)

// With PXN a rank sends through the proxy of the local GPU that is beside the device. So the ranks of a host share a
// connection, and the receiver posts what comes from them as one receive of several buffers.
func TestPXN(t *testing.T) {
	overPXN(t, func(t *testing.T, j Job) { pxn(t, j, 2, "sizes", "min=8", "max=4M", "step=16", "rounds=2") })
}

// Four buffers in a receive, then fewer, as the ranks send parts of unequal lengths.
func TestPXNOfFour(t *testing.T) {
	overPXN(t, func(t *testing.T, j Job) {
		groups := pxn(t, j, 4, "sizes", "ops=alltoallv", "min=4M", "max=8M", "step=2", "rounds=2")
		fewer := 0
		for ranks, n := range groups {
			if strings.Count(ranks, ",") < 3 {
				fewer += n
			}
		}
		if fewer == 0 {
			t.Errorf("every receive was of four: %v", groups)
		}
	})
}

// Releases up to 2.26 begin a connect for each rank that sends through a proxy, and use the first that is done for all.
func TestPXNComesAndGoes(t *testing.T) {
	overPXN(t, func(t *testing.T, j Job) { pxn(t, j, 2, "storm", "n=4") })
}

func overPXN(t *testing.T, test func(t *testing.T, j Job)) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 22) {
			t.Skipf("%s: connections between GPUs are played from 2.22 on", r)
		}
		if r.Since(2, 25) && !r.Since(2, 27) {
			t.Skipf("%s ends in init with two GPUs and two devices on a host (\"Could not find NET with id 0\"), over its own IB too", r)
		}
		t.Run("TCP", func(t *testing.T) { // lo is beside the first GPU
			test(t, Job{Release: r, Network: tcp(t, r), Env: []string{"GROUPED_HOST=1"}})
		})
		t.Run("RDMA", func(t *testing.T) { // sim0 is beside the first GPU, sim1 beside the second
			test(t, Job{Release: r, Network: rdma(t, 2), Env: []string{"SIMGPU_DMABUF=1"}})
		})
	})
}

// pxn runs a mode on two hosts, and requires that each receives from all ranks of the other at once.
func pxn(t *testing.T, j Job, perHost int, mode ...string) (groups map[string]int) {
	t.Helper()
	plugin, err := build.Plugin("internal/nccl/testdata/grouped.c", "-ldl")
	if err != nil {
		t.Fatal(err)
	}
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	topo, err := Rails(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "grouped.log")
	j.Ranks, j.PerHost = 2*perHost, perHost
	j.Env = append(j.Env, topo, "NCCL_NET_PLUGIN="+plugin, "GROUPED_NET="+lib, "GROUPED_LOG="+log, "NCCL_MAX_P2P_NCHANNELS=1")
	run := peacefully(t, j, mode...)

	through := 0
	for _, k := range run.Ranks {
		lines, err := run.Log(k.Number)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if throughProxy.MatchString(l.Text) {
				through++
			}
		}
	}
	if through == 0 {
		t.Error("nobody sends through another rank's proxy")
	}
	groups = grouped(t, log)
	t.Logf("%d connections through another rank's proxy; ranks that were received together: %v", through, groups)
	for host := range 2 {
		var all []string
		for r := range perHost {
			all = append(all, fmt.Sprint(host*perHost+r))
		}
		if groups[strings.Join(all, ",")] == 0 {
			t.Errorf("ranks %v were never received together: %v", all, groups)
		}
	}
	return groups
}

// NCCL names the proxy's rank behind the device.
var throughProxy = regexp.MustCompile(`\[send\] via NET/weft/\d+\(\d+\)`)

// grouped counts the receives of several buffers, by the ranks whose sends they take (tags, in ascending order).
func grouped(t *testing.T, log string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("no receive was of several buffers: %v", err)
	}
	groups := map[string]int{}
	for l := range strings.Lines(string(text)) {
		_, tags, _ := strings.Cut(strings.TrimSpace(l), "tags=")
		ranks := strings.Split(tags, ",")
		slices.Sort(ranks)
		groups[strings.Join(ranks, ",")]++
	}
	return groups
}
