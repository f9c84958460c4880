package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/simverbs"
)

// TestNamedLibrary names the libibverbs by either variable, and then one that is not there: each connection is by RDMA all
// the same, and a warning says by its own name which could not be used.
func TestNamedLibrary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simverbs.Device{}, simverbs.Device{})
	for _, c := range []struct {
		env   []string
		loads int // which of two copies, by its number; -1: the one that the loader finds
		warns string
	}{
		{nil, -1, ""},
		{[]string{"NCCL_IBVERBS_LIB=ONE"}, 0, ""},
		{[]string{"NCCL_LIBIBVERBS_SO=ONE"}, 0, ""},
		{[]string{"NCCL_IBVERBS_LIB=TWO", "NCCL_LIBIBVERBS_SO=ONE"}, 1, ""},
		{[]string{"NCCL_IBVERBS_LIB=ONE.none"}, -1, "NCCL_IBVERBS_LIB=ONE.none cannot be used: not found"},
		{[]string{"NCCL_LIBIBVERBS_SO=ONE.none"}, -1, "NCCL_LIBIBVERBS_SO=ONE.none cannot be used: not found"},
	} {
		t.Run(strings.Join(c.env, ","), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(w.dist, "libibverbs.so.1"))
			must(t, err, "the simulated library")
			var copies [2]string
			for i := range copies {
				copies[i] = filepath.Join(t.TempDir(), fmt.Sprintf("lib%d.so", i))
				must(t, os.WriteFile(copies[i], text, 0o755), "copy")
			}
			there := strings.NewReplacer("ONE", copies[0], "TWO", copies[1])
			for i := range c.env {
				c.env[i] = there.Replace(c.env[i])
			}
			library := "libibverbs.so.1"
			if c.loads >= 0 {
				library = copies[c.loads]
			}
			a, b := w.start("simA", newest, c.env...), w.start("simB", newest, c.env...)
			mark := marked(a)
			join(a, b, 1<<20).move(traffic{size: 10_000, count: 4, window: 2})
			if byRDMA(a, mark) != 1 {
				t.Errorf("not by RDMA: %q", said(a, 0))
			}
			log := strings.Join(said(a, 0), "\n")
			if !strings.Contains(log, "RDMA through "+library+" on ") {
				t.Errorf("another than %s: %s", library, log)
			}
			if c.warns != "" && !strings.Contains(log, there.Replace(c.warns)) || c.warns == "" && strings.Contains(log, "cannot be used") {
				t.Errorf("want %q: %s", c.warns, log)
			}
		})
	}
}
