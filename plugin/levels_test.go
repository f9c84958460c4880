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

// INFO and TRACE lines are formatted where the host prints them, and only there.
func TestWhoPrintsWhat(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		infos  int
		traces int
	}{
		{map[string]string{"NCCL_DEBUG": ""}, 0, 0},
		{map[string]string{"NCCL_DEBUG": "WARN"}, 0, 0},
		{map[string]string{"NCCL_DEBUG": "VERSION"}, 0, 0},
		{map[string]string{"NCCL_DEBUG": "INFO"}, 1, 0},
		{map[string]string{"NCCL_DEBUG": "trace"}, 1, 1},
		{map[string]string{"NCCL_DEBUG": "WARN", "NCCL_DEBUG_LEVELS": "INFO"}, 1, 0},
		{map[string]string{"NCCL_DEBUG": "WARN", "NCCL_DEBUG_LEVELS": "INFO,TRACE"}, 1, 1},
		{map[string]string{"NCCL_DEBUG": "", "NCCL_DEBUG_LEVELS": "ALL"}, 1, 1},
		{map[string]string{"NCCL_DEBUG": "INFO", "NCCL_DEBUG_LEVELS": "ATTN"}, 1, 0},
		{map[string]string{"NCCL_DEBUG": "WARN", "NCCL_WARN_ENABLE_DEBUG_INFO": "1"}, 1, 0},
		{map[string]string{"NCCL_DEBUG": "", "NCCL_WARN_ENABLE_DEBUG_INFO": "0"}, 0, 0},
		{map[string]string{"NCCL_DEBUG": "", "NCCL_ENV_PLUGIN": "libsite.so"}, 1, 0},
		{map[string]string{"NCCL_DEBUG": "", "NCCL_ENV_PLUGIN": "none"}, 0, 0},
	} {
		b := newBench(t, c.env)
		b.mustInit(abi.NetNewest)
		b.log.Info(report.Net, "informed")
		b.log.Trace(report.Net, "traced")
		infos, traces := len(b.host.lines(int32(ncclLevels[info]), "informed")), len(b.host.lines(int32(ncclLevels[trace]), "traced"))
		if infos != c.infos || traces != c.traces {
			t.Errorf("%v: %d INFO lines and %d TRACE lines, want %d and %d", c.env, infos, traces, c.infos, c.traces)
		}
		if told := report.Informs(aside{b.log}); told != (c.infos > 0) {
			t.Errorf("%v: informs %t", c.env, told)
		}
	}
}
