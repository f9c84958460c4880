package plugin

import (
	"strings"
	"testing"

	"weft/abi"
	"weft/headers"
	"weft/headers/facts"
	"weft/internal/report"
)

// hostsThatLog are the hosts whose log functions were read, and the numbers of their WARN, INFO and TRACE. Every release of NCCL
// that the facts list is checked as well.
var hostsThatLog = []struct {
	name, module string
	levels       [3]int32
}{
	{"NCCL 2.31.2", "libnccl.so.2", [3]int32{2, 3, 5}},
	{"NCCL 2.32.3, with ATTN = 6", "libnccl.so.2", [3]int32{2, 3, 5}},
	{"RCCL up to ROCm 7.1", "librccl.so.1.0.70101", [3]int32{2, 3, 5}},
	{"RCCL of ROCm 7.2", "/opt/rocm/lib/librccl.so.1.0.70200", [3]int32{3, 4, 6}},
	{"RCCL from 2.28.3 on", "librccl.so.1.0", [3]int32{3, 4, 6}},
	{"RCCL 2.27.7 beside PyTorch, of which ROCm is not known: as before, since a line too many is less harm than a line lost", "librccl.so", [3]int32{2, 3, 5}},
	{"NCCLX 2.29", "libncclx.so", [3]int32{3, 4, 6}},
	{"NCCLX 2.30", "libncclx.so", [3]int32{3, 4, 6}},
	{"NCCLX 2.32, with ATTN = 7", "libncclx.so", [3]int32{3, 4, 6}},
	{"NCCLX 2.31 before it was ported: NCCL's numbers, and no function of NCCLX", "libnccl.so.2", [3]int32{2, 3, 5}},
	{"NCCLX linked in, its functions hidden: to be told", "a.out", [3]int32{2, 3, 5}},
}

func TestLevelsOfEveryHost(t *testing.T) {
	hosts := hostsThatLog
	releases, err := facts.Releases(headers.FS)
	if err != nil || len(releases) < 50 {
		t.Fatalf("%d releases, %v", len(releases), err)
	}
	for _, r := range releases {
		hosts = append(hosts, struct {
			name, module string
			levels       [3]int32
		}{"NCCL " + r.Release, "libnccl.so.2", [3]int32{2, 3, 5}})
	}
	for _, h := range hosts {
		b := newBench(t, map[string]string{"NCCL_DEBUG": "TRACE"})
		b.host.modules[nccl] = module{1, h.module}
		b.mustInit(abi.NetNewest)
		b.log.Warn("warned")
		b.log.Info(report.Net, "informed")
		b.log.Trace(report.Net, "traced")
		for i, text := range []string{"warned", "informed", "traced"} {
			if len(b.host.lines(h.levels[i], text)) != 1 {
				t.Errorf("%s: %q is not said at level %d: %v", h.name, text, h.levels[i], b.host.said)
			}
		}
	}
}

// Two kinds of host in one process, each of which hears its own numbers.
func TestLevelsOfTwoHosts(t *testing.T) {
	b := newBench(t, nil)
	b.host.modules[other] = module{2, "libncclx.so"}
	for _, logger := range []uintptr{nccl, other} {
		if code, _ := b.init(abi.NetNewest, logger); code != 0 {
			t.Fatal(code)
		}
	}
	b.host.forget()
	for _, c := range b.engine.contexts {
		c.options.Log.Warn("both")
	}
	for i, want := range []said{{logger: nccl, level: 2}, {logger: other, level: 3}} {
		if got := b.host.said[i]; got.logger != want.logger || got.level != want.level || !strings.Contains(got.text, "both") {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Trace lines are formatted where the host prints them, and only there.
func TestWhoPrintsTraces(t *testing.T) {
	for _, c := range []struct {
		level, more string
		want        int
	}{
		{"", "", 0}, {"INFO", "", 0}, {"trace", "", 1}, {"WARN", "INFO,TRACE", 1}, {"", "ALL", 1}, {"INFO", "ATTN", 0},
	} {
		b := newBench(t, map[string]string{"NCCL_DEBUG": c.level, "NCCL_DEBUG_LEVELS": c.more})
		b.mustInit(abi.NetNewest)
		b.log.Trace(report.Net, "traced")
		if got := len(b.host.lines(int32(ncclLevels[trace]), "traced")); got != c.want {
			t.Errorf("NCCL_DEBUG=%s NCCL_DEBUG_LEVELS=%s: %d lines, want %d", c.level, c.more, got, c.want)
		}
	}
}
