package drop

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"weft/gen/emit"
	"weft/gen/parse"
)

// parts are the pieces of a release that brings net v13 and profiler v7; the
// layouts put them into the files that upstream has had.
type parts struct {
	result, data, logging, limits, callback, device, events string
	net12, net13, prof5, prof6, prof7                       string
}

// bare is one of our headers as upstream writes: no includes, no guard.
func bare(t *testing.T, name string, edits ...string) string {
	t.Helper()
	s := regexp.MustCompile(`(?m)^#(ifndef|define) THEIR_\w+\n|^#endif\n`).ReplaceAllString(foreign(t, name, edits...), "")
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(s, "")
}

// typedefs takes declarations out of a text, by name.
func typedefs(t *testing.T, text string, names ...string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range names {
		m := regexp.MustCompile(`typedef enum \{[^}]*\} ` + name + `;|typedef [^;]*\(\*` + name + `\)[^;]*;`).FindString(text)
		if m == "" {
			t.Fatalf("no %s", name)
		}
		b.WriteString(m + "\n")
	}
	return b.String()
}

func release(t *testing.T) *parts {
	common, callback := bare(t, "common.h"), bare(t, "profiler_net.h")
	return &parts{
		result:  typedefs(t, common, "ncclResult_t"),
		data:    typedefs(t, common, "ncclDataType_t", "ncclRedOp_t", "ncclFunc_t"),
		logging: typedefs(t, common, "ncclDebugLogLevel", "ncclDebugLogSubSys", "ncclDebugLogger_t"),
		limits:  strings.Join(regexp.MustCompile(`(?m)^#define \w+ .*\n`).FindAllString(common, -1), ""),
		// 2.26 and later: the callback stands with the logger, not in a header of its own.
		callback: typedefs(t, callback, "ncclProfilerCallback_t"),
		device:   bare(t, "net_device.h") + "typedef ncclNetDeviceHandle_v12_t ncclNetDeviceHandle_v13_t;\n",
		events:   bare(t, "profiler_event.h"),
		net12:    bare(t, "net_v12.h"),
		net13:    bare(t, "net_v12.h", "_v12", "_v13", "_V12", "_V13"),
		prof5:    bare(t, "profiler_v5.h"),
		prof6:    "#include \"profiler_v5.h\"\n" + bare(t, "profiler_v6.h"),
		prof7:    "#include \"profiler_v6.h\"\n" + bare(t, "profiler_v6.h", "_v6", "_v7", "StateArgs_v5_t", "StateArgs_v6_t"),
	}
}

func (p *parts) edit(t *testing.T, text *string, edits ...string) {
	t.Helper()
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(*text, edits[i]) {
			t.Fatalf("there is no %q", edits[i])
		}
		*text = strings.Replace(*text, edits[i], edits[i+1], 1)
	}
}

// layout is a way in which upstream has shipped headers.
type layout struct {
	name, only string
	files      func(p *parts) map[string]string
	net, prof  bool // it ships these tables
	shared     bool // it ships what all versions of them share
	logs       bool // it ships the log levels
}

func guard(name, text string) string {
	name = strings.ToUpper(strings.NewReplacer("/", "_", ".", "_").Replace(name)) + "_"
	return "#ifndef " + name + "\n#define " + name + "\n\n" + text + "\n#endif\n"
}

// core is src/include of 2.26 and later, with what changed since.
func core(p *parts, under, device, os string) map[string]string {
	files := map[string]string{
		"nccl_common.h":                 p.logging + p.callback,
		device:                          p.device,
		"plugin/nccl_net.h":             "#include \"nccl.h\"\n#include \"nccl_common.h\"\n#include \"" + device + "\"\n#include <stdint.h>\n" + p.limits + "#include \"net/net_v13.h\"\n#include \"net/net_v12.h\"\ntypedef ncclNet_v13_t ncclNet_t;\n",
		"plugin/net/net_v12.h":          p.net12,
		"plugin/net/net_v13.h":          p.net13,
		"plugin/nccl_profiler.h":        p.events + "#include <cstdint>\n" + os + "#include \"profiler/profiler_v7.h\"\n#include \"profiler/profiler_v6.h\"\n#include \"profiler/profiler_v5.h\"\n",
		"plugin/profiler/profiler_v5.h": p.prof5,
		"plugin/profiler/profiler_v6.h": p.prof6,
		"plugin/profiler/profiler_v7.h": p.prof7,
	}
	if os != "" {
		files["os.h"] = "#include <condition_variable>\n#include <mutex>\nstd::tm* ncclOsLocaltime(const time_t* timer, std::tm* buf);\n"
	}
	files["comm.h"] = "#include <vector>\n#include \"nccl_net.h\"\nstruct ncclComm { std::vector<int> v; };\n"
	below := map[string]string{}
	for name, text := range files {
		if rest, is := strings.CutPrefix(name, under); is {
			below[rest] = guard(name, text)
		}
	}
	return below
}

func only(files map[string]string, names ...string) map[string]string {
	some := map[string]string{}
	for _, n := range names {
		some[n] = files[n]
	}
	return some
}

var layouts = []layout{
	{"one header, to 2.18", "nccl_net.h", func(p *parts) map[string]string {
		return map[string]string{"nccl_net.h": guard("nccl_net.h", "#include \"nccl.h\"\n#include <stdint.h>\n"+p.limits+p.logging+p.callback+p.device+p.net12+p.net13)}
	}, true, false, true, true},
	{"one header among others, to 2.25", "", func(p *parts) map[string]string {
		return map[string]string{
			"nccl_net.h":    guard("nccl_net.h", "#include \"nccl.h\"\n#include \"nccl_common.h\"\n#include \"net_device.h\"\n#include <stdint.h>\n"+p.limits+p.net13+p.net12),
			"nccl_common.h": guard("nccl_common.h", p.logging+p.callback), "net_device.h": guard("net_device.h", p.device),
			"comm.h": "#include <vector>\n",
		}
	}, true, false, true, true},
	{"net example, from 2.19", "", func(p *parts) map[string]string {
		return map[string]string{
			"net.h": guard("net.h", "#include <stdint.h>\n#include <stdlib.h>\n#include \"err.h\"\n#include \"net_device.h\"\n#include \"common.h\"\n"+p.limits+"#include \"net_v13.h\"\n#include \"net_v12.h\"\ntypedef ncclNet_v13_t ncclNet_t;\n"),
			"err.h": guard("err.h", p.result), "types.h": guard("types.h", p.data), "common.h": guard("common.h", p.logging+p.callback),
			"net_device.h": guard("net_device.h", p.device), "net_v12.h": guard("net_v12.h", p.net12), "net_v13.h": guard("net_v13.h", p.net13),
		}
	}, true, false, true, true},
	{"profiler example, from 2.23", "", func(p *parts) map[string]string {
		return map[string]string{
			"profiler.h": guard("profiler.h", "#include <stdint.h>\n#include <stdlib.h>\n#include <sys/types.h>\n#include \"common.h\"\n#include \"err.h\"\n"+p.events+"#include \"profiler_v7.h\"\n#include \"profiler_v6.h\"\n#include \"profiler_v5.h\"\n"),
			"err.h":      guard("err.h", p.result), "types.h": guard("types.h", p.data), "common.h": guard("common.h", p.logging),
			"profiler_v5.h": guard("profiler_v5.h", p.prof5), "profiler_v6.h": guard("profiler_v6.h", p.prof6), "profiler_v7.h": guard("profiler_v7.h", p.prof7),
		}
	}, false, true, true, true},
	{"src/include, from 2.26", "", func(p *parts) map[string]string { return core(p, "", "net_device.h", "") }, true, true, true, true},
	{"src/include, from 2.28.9", "", func(p *parts) map[string]string { return core(p, "", "nccl_device/net_device.h", "") }, true, true, true, true},
	{"src/include, from 2.30.3", "", func(p *parts) map[string]string {
		return core(p, "", "nccl_device/net_device.h", "#include \"os.h\"\n")
	}, true, true, true, true},
	{"src/include/plugin", "", func(p *parts) map[string]string {
		return core(p, "plugin/", "nccl_device/net_device.h", "#include \"os.h\"\n")
	}, true, true, true, false},
	{"plugin/nccl_net.h", "nccl_net.h", func(p *parts) map[string]string {
		return core(p, "plugin/", "nccl_device/net_device.h", "#include \"os.h\"\n")
	}, true, false, true, false},
	{"plugin/nccl_profiler.h", "nccl_profiler.h", func(p *parts) map[string]string {
		return core(p, "plugin/", "nccl_device/net_device.h", "#include \"os.h\"\n")
	}, false, true, true, false},
	{"net_v13.h alone", "net_v13.h", func(p *parts) map[string]string {
		return only(core(p, "plugin/net/", "net_device.h", ""), "net_v13.h")
	}, true, false, false, false},
	{"profiler_v7.h alone", "profiler_v7.h", func(p *parts) map[string]string {
		return only(core(p, "plugin/profiler/", "net_device.h", ""), "profiler_v7.h")
	}, false, true, false, false},
}

// imported drops a layout of a release into our headers, and generates: what
// the generator makes of them, the report, and the error of either.
func imported(t *testing.T, l layout, p *parts) (fstest.MapFS, string, error) {
	t.Helper()
	root := repo(t, "")
	for _, name := range []string{"net.rules", "collnet.rules", "profiler.rules", "tuner.rules", "common.rules", "drift.rules"} {
		root["gen/rules/"+name] = &fstest.MapFile{Data: file(t, "gen/rules/"+name)}
	}
	for _, name := range []string{"transport/fastpath/fastpath.h", "transport/fastpath/layout.h", "guest/guest.h"} {
		root[name] = &fstest.MapFile{Data: file(t, name)}
	}
	files, report, err := runImport(t, root, folder(l.files(p)), l.only)
	if err != nil {
		return root, report, err
	}
	for _, f := range files {
		root[f.Path] = &fstest.MapFile{Data: f.Data}
	}
	sub, err := fs.Sub(root, "headers")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := parse.NCCL(sub)
	if err != nil {
		t.Fatalf("what was imported does not parse: %v", err)
	}
	_, err = emit.Files(unit, root)
	return root, report, err
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whatever is added arrives, in each layout that ships it, and nothing is
// written by hand.
func TestAdditions(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p, bit := release(t), freeBit(t)
			p.edit(t, &p.net13, "  int16_t planeId; ", "  uint32_t rackId;\n  int16_t planeId; ",
				"(*closeSend)(void* sendComm);", "(*closeSend)(void* sendComm, int linger);",
				"  ncclResult_t (*finalize)(void* ctx);\n", "  ncclResult_t (*finalize)(void* ctx);\n  ncclResult_t (*sweep)(void* ctx, ncclSweep_t how);\n")
			p.net13 = "typedef enum { SWEEP_SOFT = 0, SWEEP_HARD = 1 } ncclSweep_t;\n" + p.net13
			p.edit(t, &p.prof7, "    } ceCollBatch;\n", "    } ceCollBatch;\n    struct {\n      uint8_t phaseId;\n    } kernelPhase;\n")
			p.edit(t, &p.events, "\n};", fmt.Sprintf(",\n  ncclProfileSweep = 1 << %d\n};", bit), "\n} ncclProfilerEventState_t;", ",\n  ncclProfilerPhaseEnds = 77\n} ncclProfilerEventState_t;")
			p.edit(t, &p.logging, "\n} ncclDebugLogLevel;", ",\n  NCCL_LOG_WHISPER = 77\n} ncclDebugLogLevel;")
			p.limits += "#define NCCL_NET_MAX_SWEEPS 3\n"
			root, report, err := imported(t, l, p)
			if err != nil {
				t.Fatalf("%v\n%s", err, report)
			}
			var text strings.Builder
			for name, f := range root {
				if strings.HasPrefix(name, "headers/nccl/") {
					text.Write(f.Data)
				}
			}
			for what, shipped := range map[string]bool{
				"uint32_t rackId;": l.net, "(*closeSend)(void* sendComm, int linger);": l.net, "(*sweep)(void* ctx, ncclSweep_t how);": l.net,
				"SWEEP_HARD = 1": l.net, "ncclCollNet_v13_t;": l.net, "uint8_t phaseId;": l.prof, "ncclProfiler_v7_t;": l.prof,
				fmt.Sprint("ncclProfileSweep = ", 1<<bit): l.prof && l.shared, "ncclProfilerPhaseEnds = 77": l.prof && l.shared,
				"NCCL_LOG_WHISPER = 77": l.logs, "#define NCCL_NET_MAX_SWEEPS 3": l.net && l.shared,
			} {
				if strings.Contains(text.String(), what) != shipped {
					t.Errorf("%q arrived: %t, want %t\n%s", what, !shipped, shipped, report)
				}
			}
		})
	}
}

// What changed under a known version, or in what all versions share, is
// refused: with the header's line, what changed, and the rule to write.
func TestKnownThingsStay(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := release(t)
			p.edit(t, &p.net12, "int speed;", "long speed;", "(*irecvConsumed)(void* recvComm, int n, void* request)", "(*irecvConsumed)(void* recvComm, int n)")
			p.edit(t, &p.prof6, "bool graphCaptured;\n      int groupDepth;", "int graphCaptured;\n      int groupDepth;")
			p.edit(t, &p.events, "ncclProfilerKernelChStop = 22", "ncclProfilerKernelChStop = 99", "ncclProfileCeBatch = 1 << 14", "ncclProfileCeBatch = 1 << 20")
			p.edit(t, &p.logging, "NCCL_LOG_ABORT = 4", "NCCL_LOG_ABORT = 9")
			p.edit(t, &p.limits, "NCCL_NET_HANDLE_MAXSIZE 128", "NCCL_NET_HANDLE_MAXSIZE 256")
			_, report, err := imported(t, l, p)
			known := !strings.HasSuffix(l.name, "alone")
			if (err != nil) != known {
				t.Fatalf("error %v\n%s", err, report)
			}
			for what, shipped := range map[string]bool{
				": version 12 changed: ncclNetProperties_v12_t.speed: int, 4 bytes at 36 -> long, 8 bytes at 40":                     l.net && known,
				": version 12 changed: ncclNet_v12_t.irecvConsumed: ":                                                                l.net && known,
				": version 6 changed: ncclProfilerEventDescr_v6_t.groupApi.graphCaptured: bool, 1 bytes at 24 -> int, 4 bytes at 24": l.prof && known,
				": ncclProfilerEventState_t.ncclProfilerKernelChStop: 22 -> 99":                                                      l.prof && l.shared,
				".ncclProfileCeBatch: 16384 -> 1048576":                                                                              l.prof && l.shared,
				": ncclDebugLogLevel.NCCL_LOG_ABORT: 4 -> 9":                                                                         l.logs,
				": NCCL_NET_HANDLE_MAXSIZE: 128 -> 256":                                                                              l.net && l.shared,
				"add to gen/rules/drift.rules:\nlimit NCCL_NET_HANDLE_MAXSIZE 256 -- WHY":                                            l.net && l.shared,
				"add to gen/rules/drift.rules:\ndrift ncclProfilerEventDescr v6 groupApi.graphCaptured int HOW -- WHY":               l.prof && known,
			} {
				if err != nil && strings.Contains(err.Error(), what) != shipped {
					t.Errorf("refused %q: %t, want %t\n%v", what, !shipped, shipped, err)
				}
			}
			if place := regexp.MustCompile(`(?m)^[\w/]+\.h:\d+:\d+: (version|what all versions share)`); err != nil && !place.MatchString(err.Error()) {
				t.Errorf("no place: %v", err)
			}
		})
	}
}

// What a new version breaks is for the generator to refuse, in the same words
// in every layout.
func TestBreakingVersions(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := release(t)
			p.edit(t, &p.net13, "  ncclResult_t (*closeRecv)(void* recvComm);\n", "", "(*listen)(void* ctx, int dev", "(*listen)(void* ctx, float dev",
				"int speed;", "int pace;", "(*closeSend)(void* sendComm)", "(*closeSend)(void* sendComm, void* reason)")
			p.edit(t, &p.prof7, "  int rank;\n", "  float rank;\n")
			_, report, err := imported(t, l, p)
			if err == nil {
				t.Fatalf("accepted\n%s", report)
			}
			for what, shipped := range map[string]bool{
				`ncclNet_v2_t.closeRecv: function "closeRecv" is not in ncclNet_v13_t any more, and tables that have it must go on; write in gen/rules: adapter net v2..v12 closeRecv CFUNC -- WHY`: l.net,
				`parameter "dev" is int, but weft_net_listen of ncclNet_v13_t wants float (nccl/net_v13.h:`:                                                                                         l.net,
				"write in gen/rules: convert net v2..v12 listen.dev CFUNC":                                                                                                                          l.net,
				"write in gen/rules: relabel ncclNetProperties v12 speed NEWNAME":                                                                                                                   l.net,
				"write in gen/rules: opaque net closeSend.reason":                                                                                                                                   l.net,
				`field "rank" of ncclProfilerEventDescr_v6_t: it is int here and float in ncclProfilerEventDescr_v7_t (nccl/profiler_v7.h:`:                                                         l.prof,
			} {
				if strings.Contains(err.Error(), what) != shipped {
					t.Errorf("refused %q: %t, want %t\n%v", what, !shipped, shipped, err)
				}
			}
		})
	}
}

// A limit in other words is the same, whether it is signed or not: NCCL 2.31
// has 1ULL where 2.30 had 1L.
func TestLimitsInOtherWords(t *testing.T) {
	for _, text := range []string{"128U", "(2 * 64ULL)", "0x80L"} {
		p := release(t)
		p.edit(t, &p.limits, "NCCL_NET_HANDLE_MAXSIZE 128", "NCCL_NET_HANDLE_MAXSIZE "+text)
		l := layouts[2]
		files, report, err := runImport(t, repo(t, ""), folder(l.files(p)), l.only)
		if err != nil || len(files) != 2 || strings.Contains(report, "NCCL_NET_HANDLE_MAXSIZE") {
			t.Errorf("%s: %d files, %v\n%s", text, len(files), err, report)
		}
	}
}

// A rule lets a release have another limit; headers/ keeps its own.
func TestLimits(t *testing.T) {
	root := repo(t, "limit NCCL_NET_HANDLE_MAXSIZE 256 -- handles stay within 128 bytes\n")
	p := release(t)
	p.edit(t, &p.limits, "NCCL_NET_HANDLE_MAXSIZE 128", "NCCL_NET_HANDLE_MAXSIZE 256")
	l := layouts[2]
	files, report, err := runImport(t, root, folder(l.files(p)), l.only)
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v\n%s", len(files), err, report)
	}
}
