package nccl

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"weft/abi"
	"weft/collnet/choose"
	"weft/internal/build"
	"weft/tuner"
)

// chosen runs all collectives, and returns what NCCL has chosen for each, with which channels, and the lines about tuners.
func chosen(t *testing.T, j Job, mode ...string) (choices, tuners []string) {
	t.Helper()
	j.Env = append([]string{"NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING"}, j.Env...)
	run := start(t, j, mode...)
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	log, err := run.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range log {
		switch {
		case strings.Contains(l.Text, " Bytes -> Algo "):
			choices = append(choices, l.Text)
		case strings.HasPrefix(l.Text, "TUNER/"), strings.Contains(l.Text, ": CollNet on "):
			tuners = append(tuners, l.Text)
		}
	}
	if len(choices) == 0 {
		t.Fatal("NCCL says nothing of its choices")
	}
	return choices, tuners
}

func among(lines []string, text string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) })
}

// nothingTuned names a library that is no tuner: NCCL looks no further, and has none. "none" means that from 2.28 on only.
const nothingTuned = "NCCL_TUNER_PLUGIN=libm.so.6"

// TestTuner has NCCL find weft's tuner in the net library, and choose as it does without; and another where the user names
// one.
func TestTuner(t *testing.T) {
	other, err := build.Plugin("tools/host/testdata/good_tuner.c")
	if err != nil {
		t.Fatal(err)
	}
	overBoth(t, func(t *testing.T, j Job) {
		if !j.Release.Since(2, 21) {
			t.Skipf("%s looks for no tuner in the net library", j.Release)
		}
		mode := []string{"sizes", "max=4M", "step=4", "rounds=1"}
		plain := j
		plain.Env = []string{nothingTuned}
		want, tuners := chosen(t, plain, mode...)
		if among(tuners, "weft") {
			t.Errorf("there is a tuner: %q", tuners)
		}
		for _, env := range [][]string{nil, {"WEFT_COLLNET=1"}} {
			tuned := j
			tuned.Env = env
			got, tuners := chosen(t, tuned, mode...)
			if !among(tuners, "Closing tuner: 'weft'") {
				t.Errorf("%v: weft's tuner was not in use: %q", env, tuners)
			}
			if among(tuners, "CollNet on ") != (env != nil) {
				t.Errorf("%v: it says %q", env, tuners)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v: NCCL chooses\n%s\nand without a tuner\n%s", env, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		theirs := j
		theirs.Env = []string{"NCCL_TUNER_PLUGIN=" + other}
		if _, tuners := chosen(t, theirs, "sizes", "ops=allreduce", "max=64", "rounds=1"); !among(tuners, "Closing tuner: 'good'") || among(tuners, "weft") {
			t.Errorf("another tuner was asked for: %q", tuners)
		}
	})
}

// gains reports whether CollNet is expected to gain enough on a ring of Simple, from the power of two below these bytes to that
// above, between as many nodes, of which nothing is measured; with chunks of NCCL's own, as up to 2.29.
func gains(nodes int, bytes int64) bool {
	expect := tuner.Model(tuner.Comm{Ranks: nodes, Nodes: nodes}, choose.Fabric{N: nodes, Path: tuner.Assumed, Copied: true})
	low := int64(1) << (bits.Len64(uint64(bytes)) - 1)
	return !slices.ContainsFunc(slices.Concat(expect(abi.FuncAllReduce, low), expect(abi.FuncAllReduce, 2*low-1)), func(t tuner.Times) bool {
		return float64(t.Otherwise[abi.NCCL_ALGO_RING][choose.Simple]) < 1.05*float64(t.CollNet)
	})
}

// TestTunerVetoes has a collNet that NCCL's model thinks to be a switch's: it is chosen, until the tuner forbids it.
func TestTunerVetoes(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 24) || r.Since(2, 29) {
			t.Skipf("%s finds no chain of CollNet here, or it is not played, or not said by name", r)
		}
		plugin, err := build.Plugin("internal/nccl/testdata/collnet.c", "-ldl")
		if err != nil {
			t.Fatal(err)
		}
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			wanted, algo string
			vetoes       bool
		}{{"0", "Ring,CollNetChain", false}, {"1", "Ring,CollNetChain", true}, {"1", "CollNetChain", false}} {
			choices, tuners := chosen(t, Job{Release: r, Network: tcp(t, r), Ranks: 3, Env: []string{
				"NCCL_NET_PLUGIN=" + plugin, "COLLNET_NET=" + lib, "COLLNET_LOG=/dev/null", "NCCL_TUNER_PLUGIN=" + lib, "WEFT_COLLNET=" + c.wanted,
				"NCCL_COLLNET_ENABLE=1", "NCCL_ALGO=" + c.algo, "NCCL_PROTO=Simple",
			}}, "sizes", "ops=allreduce", "max=1M", "step=4", "rounds=1")
			if among(tuners, "CollNet on 3 nodes: all-reduce ") != (c.wanted == "1") {
				t.Errorf("WEFT_COLLNET=%s, of %s: %q", c.wanted, c.algo, tuners)
			}
			some := map[bool]int{}
			for _, l := range choices {
				var bytes int64
				if _, err := fmt.Sscanf(l, "AllReduce: %d Bytes", &bytes); err != nil {
					t.Fatalf("%q: %v", l, err)
				}
				chain := strings.Contains(l, "Algo COLLNET_CHAIN")
				if some[chain]++; chain != (!c.vetoes || gains(3, bytes)) {
					t.Errorf("WEFT_COLLNET=%s, of %s: %s", c.wanted, c.algo, l)
				}
			}
			if some[true] == 0 || (some[false] > 0) != c.vetoes {
				t.Errorf("WEFT_COLLNET=%s, of %s: CollNet or not: %v of\n%s", c.wanted, c.algo, some, strings.Join(choices, "\n"))
			}
		}
	})
}
