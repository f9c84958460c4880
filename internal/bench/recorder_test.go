package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/internal/build"
	"weft/profiler"
)

// program builds one of the C programs of this folder.
func program(name string, libraries ...string) (string, error) {
	folder := "internal/bench/" + name
	return build.Once("bench."+name, func(root, out string) error {
		sources, err := filepath.Glob(filepath.Join(root, folder, "*.c"))
		if err != nil {
			return err
		}
		cmd := exec.Command("gcc", slices.Concat([]string{"-std=gnu11", "-O2", "-Iheaders", "-Iheaders/nccl", "-o", out}, sources, []string{"-ldl"}, libraries)...)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("gcc: %w\n%s", err, text)
		}
		return nil
	}, folder, "headers")
}

// The program that calls the profiler says all that the chapters read, and measures nothing where nothing is recorded.
func TestEvents(t *testing.T) {
	library, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	events, err := program("events", "-lpthread")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		profile, args string
		says          map[string]int // numbers by name
		fails         string
	}{
		{"trace", "threads=1 count=2000", map[string]int{"clock": 2, "start": 2, "state": 2, "stop": 2, "coll": 2, "loop": 1, "loop.clock": 1}, ""},
		{"trace", "threads=8 count=2000", map[string]int{"clock": 2, "start": 2, "state": 2, "stop": 2, "coll": 2, "loop": 1, "loop.clock": 1}, ""},
		{"trace", "rate=10000 ms=50", map[string]int{"thread": 1, "process": 1, "rate": 1}, ""},
		{"0", "rate=10000 ms=50", map[string]int{"thread": 1, "process": 1, "rate": 1}, ""},
		{"0", "threads=1 count=2000", nil, "nothing is recorded"},
		{"trace", "threads=0", nil, "1 to 64 threads"},
		{"trace", "speed=1", nil, "no such key"},
	} {
		_, err := mode{profile: c.profile}.try(func(env []string) ([]float64, error) {
			f, err := figuresOf(env, events, append([]string{library}, strings.Fields(c.args)...)...)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%s: says %v, %v; want %q", c.args, f, err, c.fails)
				}
				return nil, nil
			}
			for name, n := range c.says {
				if len(f[name]) != n {
					t.Errorf("%s: %s is %v, want %d numbers", c.args, name, f[name], n)
				}
			}
			if len(f) != len(c.says) {
				t.Errorf("%s: says %v", c.args, f)
			}
			return nil, err
		})
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

// Each round has every mode once, with an empty folder of its own.
func TestAlternate(t *testing.T) {
	c, seen := &config{rounds: 7}, map[string]int{}
	b, err := c.alternate(modes, 2, func(env []string) ([]float64, error) {
		profile, dir := strings.TrimPrefix(env[0], "WEFT_PROFILE="), strings.TrimPrefix(env[1], "WEFT_PROFILE_DIR=")
		seen[profile]++
		if seen[dir]++; seen[dir] > 1 {
			t.Errorf("%s is used twice", dir)
		}
		return []float64{float64(len(profile)), 1}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range modes {
		want := slices.Repeat([]float64{float64(len(m.profile))}, c.rounds)
		if !slices.Equal(b.cost[0][i], want) || len(b.cost[1][i]) != c.rounds {
			t.Errorf("%s: %v, %v", m.name, b.cost[0][i], b.cost[1][i])
		}
	}
	if _, err := c.alternate(modes, 2, func([]string) ([]float64, error) { return []float64{1}, nil }); err == nil {
		t.Error("a figure that was not measured is missed by nobody")
	}
}

// What is left out of the events of NCCL's profiler is what it says.
func TestNoKernels(t *testing.T) {
	all, err := profiler.Mask("")
	some, err2 := profiler.Mask(noKernels)
	if kernels := int32(abi.ProfileKernelCh | abi.ProfileKernelPhase); err != nil || err2 != nil || some != all&^kernels || all&kernels != kernels {
		t.Errorf("%#x of %#x, %v, %v", some, all, err, err2)
	}
}

// What the kernel counts of threads is added up: here the time of one that is busy, which needs no hardware that counts.
func TestCounter(t *testing.T) {
	c, err := count(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, unix.Getpid())
	if err != nil { // a container may forbid it, or a kernel have none
		if n := c.stop(); n != 0 || !strings.Contains(err.Error(), "perf_event_open: ") {
			t.Errorf("%v, and counts %v", err, n)
		}
		return
	}
	for x, i := 1.0, 0; i < 1_000_000; i++ {
		x = x*1.000001 + float64(i)
		_ = x
	}
	if n := c.stop(); n <= 0 {
		t.Errorf("%v ns of a busy process", n)
	}
	if _, err := count(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, 1<<30); err == nil {
		t.Error("a process that is not there is counted")
	}
}
