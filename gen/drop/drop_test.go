package drop

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"weft/gen/asof"
	"weft/gen/lock"
	"weft/gen/model"
	"weft/gen/output"
	"weft/gen/parse"
	"weft/gen/source"
	"weft/headers"
)

// older are our headers, parsed once.
var older = sync.OnceValues(func() (fstest.MapFS, error) { return asof.Headers(headers.FS) })

// repo returns a repository that holds our headers and the given drift rules.
func repo(t *testing.T, drift string) fstest.MapFS {
	t.Helper()
	root := fstest.MapFS{"gen/rules/drift.rules": {Data: []byte(drift)}}
	old, err := older()
	if err != nil {
		t.Fatal(err)
	}
	for p, f := range old {
		root["headers/"+p] = f
	}
	return root
}

func ours(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(headers.FS, "nccl/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// foreign makes one of our headers look like somebody else's: without its
// includes, guarded otherwise, edited by pairs of old and new text.
func foreign(t *testing.T, name string, edits ...string) string {
	t.Helper()
	s := regexp.MustCompile(`(?m)^#include.*\n`).ReplaceAllString(ours(t, name), "")
	s = strings.ReplaceAll(s, "WEFT_NCCL_", "THEIR_")
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(s, edits[i]) {
			t.Fatalf("%s has no %q", name, edits[i])
		}
		s = strings.ReplaceAll(s, edits[i], edits[i+1])
	}
	return s
}

// freeBit is a bit that no event of ours has.
func freeBit(t *testing.T) int {
	t.Helper()
	taken := 0
	for _, m := range regexp.MustCompile(`ncclProfile\w+ = (?:1 << (\d+)|(\d+))`).FindAllStringSubmatch(ours(t, "profiler_event.h"), -1) {
		if bit, err := strconv.Atoi(m[1]); err == nil {
			taken |= 1 << bit
		} else if value, err := strconv.Atoi(m[2]); err == nil { // as a drop writes it; states have small ones
			taken |= value
		}
	}
	for bit := 30; bit > 0; bit-- {
		if taken&(1<<bit) == 0 {
			return bit
		}
	}
	t.Fatal("the events have all bits")
	return 0
}

// next turns a header of version 12 into an additive version 13.
func next(t *testing.T) string {
	return foreign(t, "net_v12.h", "_v12", "_v13", "_V12", "_V13",
		"  int16_t planeId; ", "  uint32_t rackId; /* where it stands */\n  int16_t planeId; ",
		"(*closeSend)(void* sendComm);", "(*closeSend)(void* sendComm, int linger);",
		"  ncclResult_t (*finalize)(void* ctx);\n  /* Hints", "  ncclResult_t (*finalize)(void* ctx);\n  /* Sweeps. */\n  ncclResult_t (*sweep)(void* ctx, ncclSweep_t how);\n  /* Hints")
}

const sweep = "typedef enum { SWEEP_SOFT = 0, SWEEP_HARD = 1 } ncclSweep_t;\n"

func device(t *testing.T) string {
	return foreign(t, "net_device.h", "\n#endif\n", "typedef ncclNetDeviceHandle_v12_t ncclNetDeviceHandle_v13_t;\n#endif\n")
}

func folder(files map[string]string) fstest.MapFS {
	f := fstest.MapFS{}
	for name, text := range files {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

// runImport imports a folder and returns the files, the report and the error.
func runImport(t *testing.T, root, src fs.FS, only string) ([]output.File, string, error) {
	t.Helper()
	s, err := source.Load(src, only)
	if err != nil {
		return nil, "", err
	}
	var out strings.Builder
	files, err := Import(root, s, &out)
	return files, out.String(), err
}

// shapes are the ways in which upstream ships a new version.
func shapes(t *testing.T) map[string]fstest.MapFS {
	common := foreign(t, "common.h")
	callback := strings.Split(foreign(t, "profiler_net.h"), "/* pluginId")[0] + "#endif\n"
	result, rest, _ := strings.Cut(common, "/* Elements of a collective. */")
	logging := rest[strings.Index(rest, "/* How much is logged. */"):]
	data := "#ifndef TYPES_H\n#define TYPES_H\n" + rest[:strings.Index(rest, "/* How much is logged. */")] + "#endif\n"
	return map[string]fstest.MapFS{
		"example": folder(map[string]string{
			"net.h":        "#ifndef NET_H\n#define NET_H\n#include <stdint.h>\n#include <stdlib.h>\n#include \"err.h\"\n#include \"net_device.h\"\n#include \"common.h\"\n#include \"net_v13.h\"\ntypedef ncclNet_v13_t ncclNet_t;\n#endif\n",
			"err.h":        result + "#endif\n",
			"types.h":      data,
			"common.h":     "#ifndef COMMON_H\n#define COMMON_H\n#include <stdint.h>\n" + sweep + strings.TrimSuffix(logging, "\n#endif\n") + callback + "#endif\n",
			"net_device.h": device(t),
			"net_v13.h":    next(t),
		}),
		"core": folder(map[string]string{
			"nccl_common.h":            "#pragma once\n#include <cstdint>\n#ifdef NCCL_OS_LINUX\n#include <bits/c++config.h>\n#endif\n" + sweep + strings.TrimSuffix(logging, "\n#endif\n") + callback,
			"nccl_device/net_device.h": device(t),
			"plugin/nccl_net.h":        "#pragma once\n#include \"nccl.h\"\n#include \"nccl_common.h\"\n#include \"nccl_device/net_device.h\"\n#include <stdint.h>\n#include \"net/net_v13.h\"\ntypedef ncclNet_v13_t ncclNet_t;\n",
			"plugin/net/net_v13.h":     next(t),
			"comm.h":                   "#include <vector>\nstruct ncclComm { std::vector<int> v; };\n",
		}),
	}
}

// A new version is restated, whichever way it came; what it adds is there.
func TestNewVersion(t *testing.T) {
	for name, src := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			files, report, err := runImport(t, repo(t, ""), src, "")
			if err != nil {
				t.Fatalf("%v\n%s", err, report)
			}
			after := repo(t, "")
			var paths []string
			for _, f := range files {
				paths = append(paths, f.Path)
				after[f.Path] = &fstest.MapFile{Data: f.Data}
			}
			if diff := cmp.Diff([]string{"headers/nccl/net_v13.h", "headers/LOCK"}, paths); diff != "" {
				t.Errorf("files: %s", diff)
			}
			text := string(after["headers/nccl/net_v13.h"].Data)
			for _, theirs := range []string{"THEIR_", "where it stands", "Sweeps"} {
				if strings.Contains(text, theirs) {
					t.Errorf("the text of the source was copied: %q", theirs)
				}
			}
			sub, err := fs.Sub(after, "headers")
			if err != nil {
				t.Fatal(err)
			}
			u, err := parse.NCCL(sub)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			r := u.Newest(model.Net).Record
			if f, _ := r.Field("sweep"); u.Newest(model.Net).Version != 13 || f == nil || f.Type.Declare(f.Name) != "ncclResult_t (*sweep)(void* ctx, ncclSweep_t how)" {
				t.Errorf("sweep: %+v", f)
			}
			if f, _ := u.Record("ncclNetProperties_v13_t").Field("rackId"); f == nil || f.Offset != 128 {
				t.Errorf("rackId: %+v", f)
			}
			if f, _ := r.Field("closeSend"); f.Doc != "" {
				t.Errorf("closeSend has another parameter but kept the comment %q", f.Doc)
			}
			if f, _ := r.Field("closeRecv"); f.Doc == "" {
				t.Error("closeRecv is as before but lost its comment")
			}
			lines, err := ReadLock(sub)
			if err != nil || !lock.Known(lines)["ncclNet_v13_t"] || !lock.Known(lines)["ncclNet_v2_t"] {
				t.Errorf("LOCK does not hold all versions: %v", err)
			}
			again, report, err := runImport(t, after, src, "")
			if err != nil || len(again) != 0 || strings.Contains(report, New) {
				t.Errorf("importing it again: %d files, %v\n%s", len(again), err, report)
			}
		})
	}
}

// Our own headers, dropped as they are, are identical and change nothing.
func TestIdentical(t *testing.T) {
	root := repo(t, "")
	src, err := fs.Sub(root, "headers/nccl")
	if err != nil {
		t.Fatal(err)
	}
	files, report, err := runImport(t, root, src, "")
	if err != nil || len(files) > 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	n := 0
	for _, l := range strings.Split(strings.TrimSpace(report), "\n") {
		if !strings.HasPrefix(l, Identical) {
			t.Errorf("report: %s", l)
		}
		n++
	}
	if n < 60 {
		t.Errorf("only %d types compared", n)
	}
}

const graphCaptured = "drift ncclProfilerEventDescr v5 groupApi.graphCaptured int low-byte -- copies differ\n"

// What contradicts a known version stops, naming member, version and change.
func TestChanged(t *testing.T) {
	boolToInt := []string{"groupApi */\n      bool", "", "bool graphCaptured;\n      int groupDepth;", "int graphCaptured;\n      int groupDepth;"}[2:]
	for _, c := range []struct {
		name, header string
		edits        []string
		drift        string
		want         []string // parts of the error; none: accepted
		report       string
	}{
		{name: "field type", header: "net_v12.h", edits: []string{"int speed; ", "long speed; "},
			want: []string{"net_v12.h:", "version 12 changed: ncclNetProperties_v12_t.speed: int, 4 bytes at 36 -> long, 8 bytes at 40"}},
		{name: "field moved", header: "net_v8.h", edits: []string{"int regIsGlobal; ", "", "float latency; ", "int regIsGlobal; float latency; "},
			want: []string{"ncclNetProperties_v8_t.speed: int, 4 bytes at 32 -> int, 4 bytes at 28"}},
		{name: "function removed", header: "net_v11.h", edits: []string{"  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);\n", ""},
			want: []string{"version 11 changed: ncclNet_v11_t.irecvConsumed: ncclResult_t (*)(void* recvComm, int n, void* request), 8 bytes at 144 -> none"}},
		{name: "parameter type", header: "net_v10.h", edits: []string{"int tag,", "uint64_t tag,"},
			want: []string{"version 10 changed: ncclNet_v10_t.isend"}},
		{name: "const", header: "net_v9.h", edits: []string{"(*closeSend)(void* sendComm)", "(*closeSend)(const void* sendComm)"},
			want: []string{"version 9 changed: ncclNet_v9_t.closeSend"}},
		{name: "parameter name", header: "net_v9.h", edits: []string{"(*closeSend)(void* sendComm)", "(*closeSend)(void* comm)"},
			report: "the same in other words"},
		{name: "drift without a rule", header: "profiler_v5.h", edits: boolToInt,
			want: []string{"version 5 changed: ncclProfilerEventDescr_v5_t.groupApi.graphCaptured: bool, 1 bytes at 24 -> int, 4 bytes at 24", "drift ncclProfilerEventDescr v5 groupApi.graphCaptured int HOW -- WHY"}},
		{name: "drift with a rule", header: "profiler_v5.h", edits: boolToInt, drift: graphCaptured,
			report: Drifted},
		{name: "another drift than the rule's", header: "profiler_v5.h", edits: []string{"bool graphCaptured;\n      int groupDepth;", "long graphCaptured;\n      int groupDepth;"}, drift: graphCaptured,
			want: []string{"graphCaptured: bool, 1 bytes at 24 -> long, 8 bytes at 24"}},
		{name: "error code", header: "common.h", edits: []string{"ncclSystemError = 2,", "ncclSystemError = 9,"},
			want: []string{"ncclResult_t.ncclSystemError: 2 -> 9"}},
		{name: "undefined type", header: "net_v12.h", edits: []string{"int speed; ", "speed_t speed; "},
			want: []string{"net_v12.h:", "speed_t is not declared"}},
		{name: "packed", header: "net_v12.h", edits: []string{"} ncclNetProperties_v12_t;", "} __attribute__((packed)) ncclNetProperties_v12_t;"},
			want: []string{"net_v12.h:", "__attribute__: an attribute may change the layout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := folder(map[string]string{c.header: foreign(t, c.header, c.edits...)})
			if c.header == "common.h" {
				src["net_v12.h"] = &fstest.MapFile{Data: []byte(foreign(t, "net_v12.h"))}
			}
			files, report, err := runImport(t, repo(t, c.drift), src, "")
			if len(files) > 0 {
				t.Errorf("%d files written", len(files))
			}
			if (err != nil) != (len(c.want) > 0) {
				t.Fatalf("error %v\n%s", err, report)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error does not say %q:\n%v", w, err)
				}
			}
			if !strings.Contains(report, c.report) {
				t.Errorf("report does not say %q:\n%s", c.report, report)
			}
		})
	}
}

// New states of events come with the version that brings them.
func TestGrownEnums(t *testing.T) {
	v7 := foreign(t, "profiler_v6.h", "_v6", "_v7", "typedef ncclProfilerEventStateArgs_v5_t ncclProfilerEventStateArgs_v7_t;", "typedef ncclProfilerEventStateArgs_v6_t ncclProfilerEventStateArgs_v7_t;")
	events := foreign(t, "profiler_event.h",
		"\n} ncclProfilerEventState_t;", ",\n  ncclProfilerInvented = 77\n} ncclProfilerEventState_t;",
		"\n};", fmt.Sprintf(",\n  ncclProfileInvented = 1 << %d\n};", freeBit(t)))
	root := repo(t, "")
	files, report, err := runImport(t, root, folder(map[string]string{"profiler_v7.h": v7, "profiler.h": events}), "")
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	for _, f := range files {
		root[f.Path] = &fstest.MapFile{Data: f.Data}
	}
	sub, err := fs.Sub(root, "headers")
	if err != nil {
		t.Fatal(err)
	}
	u, err := parse.NCCL(sub)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range u.Enums {
		for _, v := range e.Values {
			if strings.HasSuffix(v.Name, "Invented") {
				got = append(got, v.Name)
			}
		}
	}
	if diff := cmp.Diff([]string{"ncclProfileInvented", "ncclProfilerInvented"}, got); diff != "" {
		t.Error(diff)
	}
}

// What cannot be imported says why.
func TestSources(t *testing.T) {
	v13 := next(t)
	for name, c := range map[string]struct {
		files map[string]string
		only  string
		want  string
	}{
		"empty":             {map[string]string{"readme.txt": "x"}, "", "no header here defines ncclNet_vN_t"},
		"two copies":        {map[string]string{"a/net_v13.h": v13, "b/net_v13.h": v13}, "", "ncclNet_v13_t is defined in a/net_v13.h and in b/net_v13.h: name one of their folders"},
		"one file":          {map[string]string{"net_v13.h": v13, "net_device.h": device(t), "common.h": sweep}, "net_v13.h", ""},
		"one that includes": {map[string]string{"net.h": "#include \"in/net_v13.h\"\n", "in/net_v13.h": v13, "other/net_v13.h": v13, "net_device.h": device(t), "common.h": sweep}, "net.h", ""},
		"alone":             {map[string]string{"net_v12.h": foreign(t, "net_v12.h")}, "net_v12.h", ""},
		"includes siblings": {map[string]string{"net_v12.h": "#include \"err.h\"\n#include \"nccl_device/net_device.h\"\n#include \"profiler_net.h\"\n" + foreign(t, "net_v12.h")}, "net_v12.h", ""},
		"a foreign sibling": {map[string]string{"net_v12.h": "#include \"rack.h\"\n" + foreign(t, "net_v12.h")}, "net_v12.h", "net_v12.h:1:"},
		"garbage":           {map[string]string{"net_v12.h": "\n(((\n"}, "net_v12.h", "net_v12.h:2:"},
		"garbage in folder": {map[string]string{"net_v12.h": "\n(((\n", "net_v11.h": foreign(t, "net_v11.h")}, "", "net_v12.h:2:"},
		"other name":        {map[string]string{"mine.h": "int a\nint b;\n"}, "mine.h", "mine.h:2:"},
		"truncated":         {map[string]string{"net_v12.h": "typedef struct {\n  int speed;\n"}, "net_v12.h", `net_v12.h:1: "{" is never closed`},
		"nothing inside":    {map[string]string{"net_v12.h": ""}, "net_v12.h", "net_v12.h:1:1: defines no table, neither ncclNet_v12_t"},
		"missing type":      {map[string]string{"net_v13.h": v13, "net_device.h": device(t)}, "net_v13.h", "ncclSweep_t is not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := runImport(t, repo(t, ""), folder(c.files), c.only)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// The rules of the repository itself are read, and match.
func TestOwnDrifts(t *testing.T) {
	root := os.DirFS("../..")
	ds, err := Drifts(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(ds) == 0 {
		t.Error("no drift rules")
	}
	_, err = Drifts(repo(t, "drift ncclProfilerEventDescr v5 groupApi.captured int low-byte -- gone\n"))
	if err == nil || !strings.Contains(err.Error(), "gen/rules/drift.rules:1: drift matches nothing") {
		t.Errorf("a rule for a member that does not exist: %v", err)
	}
}

// A header alone takes what it lacks from ours, which the report says; also a
// device handle of its own version, which so far is another name for the last.
func TestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		wrote int
		want  []string
	}{
		"net_v12.h": {foreign(t, "net_v12.h"), 0, []string{
			"taken from headers/nccl/common.h: ", "ncclResult_t", "taken from headers/nccl/net_device.h: ", "taken from headers/nccl/profiler_net.h: ncclProfilerCallback_t"}},
		"net_v13.h": {foreign(t, "net_v12.h", "_v12", "_v13", "_V12", "_V13"), 2, []string{
			"new         ncclNet_v13_t", "ncclNetDeviceHandle_v13_t is not declared there; it is taken to be ncclNetDeviceHandle_v12_t"}},
	} {
		files, report, err := runImport(t, repo(t, ""), folder(map[string]string{name: c.text}), name)
		if err != nil || len(files) != c.wrote {
			t.Fatalf("%s: %d files, %v\n%s", name, len(files), err, report)
		}
		for _, w := range c.want {
			if !strings.Contains(report, w) {
				t.Errorf("%s: report does not say %q:\n%s", name, w, report)
			}
		}
	}
}
