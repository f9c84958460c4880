package nccl

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

var startLine = regexp.MustCompile(`(?m)^start \d+ type=(0x[0-9a-f]+)`)

// TestChain has profilers of four versions behind weft: each hears of as many events of each type that its version has as
// weft records, and names no handle that it has not given.
func TestChain(t *testing.T) {
	first, _ := host.FamilyProf.Versions()
	last := build.ChainedNewest
	versions := []int{first, (first + last) / 2, last - 1, last}
	var libs []string
	for _, v := range versions {
		lib, err := build.Chained(v)
		if err != nil {
			t.Fatal(err)
		}
		libs = append(libs, lib)
	}
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 23) || r.Since(2, 26) && !r.Since(2, 27) {
			t.Skipf("%s has no profilers, or hangs in ncclCommDestroy with any", r)
		}
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		dir, log := t.TempDir(), filepath.Join(t.TempDir(), "told")
		run := start(t, Job{Release: r, Network: tcp(t, r), Ranks: 3, Env: []string{
			"WEFT_PROFILE=trace", "WEFT_PROFILE_DIR=" + dir, "NCCL_PROFILER_PLUGIN=" + lib,
			"WEFT_PROFILER_CHAIN=" + strings.Join(libs, ","), "CHAINED_LOG=" + log, "CHAINED_MASK=0xffdf",
		}}, "sizes", "ops=allreduce,alltoall", "min=64K", "max=1M", "rounds=2")
		if err := run.Wait(); err != nil {
			t.Fatal(err)
		}
		files, bad, err := trace.Load([]string{dir})
		if err != nil || len(bad) != 0 {
			t.Fatal(err, bad)
		}
		var own [format.Types]int
		for _, p := range model.New(files).Processes {
			for _, e := range p.Events {
				own[e.Type]++
			}
		}
		if own[format.Coll] == 0 || own[format.ProxyStep] == 0 {
			t.Fatalf("recorded %v", own)
		}
		for _, v := range versions {
			text, err := os.ReadFile(fmt.Sprintf("%s.v%d", log, v))
			if err != nil {
				t.Fatal(err)
			}
			if at := strings.Index(string(text), "BAD"); at >= 0 {
				t.Errorf("v%d: %s", v, strings.SplitN(string(text[at:]), "\n", 2)[0])
			}
			// What was above collectives until v4, their group, is above them still; calls came with v5, and NCCL 2.28.
			if at := strings.Index(string(text), "type=0x2 below 0"); at >= 0 && (v < 5 || r.Since(2, 28)) {
				t.Errorf("v%d: a collective is below nothing:\n%.300s", v, text[max(0, at-200):])
			}
			var told [format.Types]int
			for _, m := range startLine.FindAllStringSubmatch(string(text), -1) {
				bits, err := strconv.ParseUint(m[1], 0, 64)
				if err != nil {
					t.Fatal(err)
				}
				for typ := range told {
					if bits == 1<<typ {
						told[typ]++
					}
				}
			}
			for typ, n := range told {
				if n != own[typ] && (n != 0 || v >= last-1) {
					t.Errorf("v%d was told of %d events of type %d, recorded are %d", v, n, typ, own[typ])
				}
			}
			if told[format.Coll] == 0 {
				t.Errorf("v%d was told of no collective:\n%.2000s", v, text)
			}
		}
	})
}
