package nccl

import (
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/simverbs"
)

// each runs a test on every release that was built.
func each(t *testing.T, test func(t *testing.T, r Release)) {
	t.Helper()
	list, err := Releases()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Skip("no release of NCCL is built: make test-nccl NCCL_SRC=TREE runs this")
	}
	for _, r := range list {
		t.Run(r.String(), func(t *testing.T) { test(t, r) })
	}
}

// tcp and rdma are the networks of a test; worlds go with it.
func tcp(t *testing.T, r Release) Network {
	t.Helper()
	n, err := TCP(r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func rdma(t *testing.T, devices int) Network {
	t.Helper()
	return rdmaOf(t, make([]simverbs.Device, devices)...)
}

func rdmaOf(t *testing.T, devices ...simverbs.Device) Network {
	t.Helper()
	n, err := RDMA(devices...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.World.Remove(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// overBoth runs a test on every release and over both networks.
func overBoth(t *testing.T, test func(t *testing.T, j Job)) {
	t.Helper()
	each(t, func(t *testing.T, r Release) {
		t.Run("TCP", func(t *testing.T) { test(t, Job{Release: r, Network: tcp(t, r), Ranks: 3}) })
		t.Run("RDMA", func(t *testing.T) { test(t, Job{Release: r, Network: rdma(t, 1), Ranks: 3}) })
	})
}

// start starts a job, in a folder that stays when the test fails.
func start(t *testing.T, j Job, mode ...string) *Run {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-nccl-")
	if err != nil {
		t.Fatal(err)
	}
	j.Dir, j.Mode = dir, append(j.Mode, mode...)
	run, err := Start(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Stop()
		if t.Failed() {
			t.Logf("logs are in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return run
}

// peacefully runs a job to its end; nothing may be wrong, and nothing be said that is not wanted. With subsystem NET weft
// tells what each connection goes over.
func peacefully(t *testing.T, j Job, mode ...string) *Run {
	t.Helper()
	j.Env = append([]string{"NCCL_DEBUG_SUBSYS=INIT,ENV,NET"}, j.Env...)
	run := start(t, j, mode...)
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, k := range run.Ranks {
		if n := ours(t, run, k.Number, "first used through table"); n["INFO"] != 1 {
			t.Errorf("rank %d has not gone over weft", k.Number)
		}
	}
	lines, err := run.Unwanted()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) > 0 {
		t.Errorf("lines that a run in peace must not have, or that peace.txt lacks:\n%s", strings.Join(lines[:min(len(lines), 20)], "\n"))
	}
	return run
}

// ours counts the lines of weft in a rank's log that have text in them, by level.
func ours(t *testing.T, run *Run, rank int, text string) (levels map[string]int) {
	t.Helper()
	log, err := run.Log(rank)
	if err != nil {
		t.Fatal(err)
	}
	levels = map[string]int{}
	for _, l := range log {
		if l.Ours() && strings.Contains(l.Text, text) {
			levels[l.Level]++
		}
	}
	return levels
}

const patience = 2 * time.Minute
