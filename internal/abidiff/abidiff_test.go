package abidiff

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/gen/model"
	"weft/headers"
	"weft/internal/release"
)

func ask(t *testing.T, args ...string) Report {
	t.Helper()
	r, err := Ask(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	for _, form := range []string{"text", "table", "json"} {
		if written(t, r, form) == "" {
			t.Errorf("%q says nothing as %s", args, form)
		}
	}
	return r
}

// members are what was added or removed between two tables, by type and name.
func members(d *Diff, what string) (list []string) {
	for _, p := range d.Pairs {
		for _, x := range p.Types {
			for _, c := range x.Changes {
				if c.What == what {
					list = append(list, x.Kind+" "+c.Member)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// Of every two neighbours the difference is told, there and back: what one way is
// new, the other way is gone.
func TestNeighbours(t *testing.T) {
	u, err := known()
	if err != nil {
		t.Fatal(err)
	}
	pairs, differ := 0, 0
	for _, f := range model.Families {
		vs := versions(u, f)
		for i := range vs[1:] {
			pairs++
			a, b := fmt.Sprint(vs[i]), fmt.Sprint(vs[i+1])
			there, back := ask(t, string(f), a, b).(*Diff), ask(t, string(f), b, a).(*Diff)
			if there.Differ != back.Differ {
				t.Errorf("%s v%s and v%s differ one way only", f, a, b)
			}
			if there.Differ {
				differ++
			}
			for _, w := range [][2]string{{Added, Removed}, {Removed, Added}} {
				if x, y := members(there, w[0]), members(back, w[1]); !slices.Equal(x, y) {
					t.Errorf("%s v%s to v%s: %s %q, and back %s %q", f, a, b, w[0], x, w[1], y)
				}
			}
		}
	}
	if pairs < 29 || differ < pairs-2 {
		t.Errorf("%d pairs, of which %d differ", pairs, differ)
	}
}

// What is compared with itself does not differ: tables, releases, headers.
func TestSame(t *testing.T) {
	t.Chdir(t.TempDir())
	ours(t, "a")
	ours(t, "b")
	u, err := known()
	if err != nil {
		t.Fatal(err)
	}
	all, err := release.All()
	if err != nil {
		t.Fatal(err)
	}
	calls := [][]string{{"a", "b"}, {"b"}, {"a/net_v9.h", "b/net_v9.h"}}
	for _, x := range u.Tables {
		v := fmt.Sprint(x.Version)
		calls = append(calls, []string{string(x.Family), v, v}, []string{string(x.Family), v, filepath.Join("a", filepath.Base(x.Header))})
	}
	for _, r := range all {
		calls = append(calls, []string{r.Release.Release, r.Release.Release})
	}
	for _, call := range calls {
		if r := ask(t, call...); r.Differs() || !strings.Contains(written(t, r, "text"), "\nno difference\n") {
			t.Errorf("%q differ:\n%s", call, written(t, r, "text"))
		}
	}
}

// ours copies the headers of this build to a folder.
func ours(t *testing.T, dir string) {
	t.Helper()
	names, err := fs.Glob(headers.FS, "nccl/*.h")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d headers, %v", len(names), err)
	}
	for _, name := range names {
		b, err := fs.ReadFile(headers.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, filepath.Base(name)), string(b))
	}
}

// Each change in a copied header is told, in these words, and nothing else is.
func TestMutations(t *testing.T) {
	const domains = "  int nNvlDomains;\n  int minRanksPerNvlDomain;\n"
	for name, c := range map[string]struct {
		file, from, to string
		want           string // "what member: says", a line for each change
		names          bool   // it is in names only, and no difference
	}{
		"a field more":         {"tuner_v5.h", domains, "  int nNvlDomains;\n  long more;\n  int minRanksPerNvlDomain;\n", "changed -: aligned to 8, was to 4\nadded more: long, 8 bytes at 8\nmoved minRanksPerNvlDomain: from 4 to 16\nmoved maxRanksPerNvlDomain: from 8 to 20", false},
		"a field less":         {"tuner_v5.h", "  int minRanksPerNvlDomain;\n", "", "moved maxRanksPerNvlDomain: from 8 to 4\nremoved minRanksPerNvlDomain: int, 4 bytes at 4", false},
		"fields in turn":       {"tuner_v5.h", domains, "  int minRanksPerNvlDomain;\n  int nNvlDomains;\n", "moved minRanksPerNvlDomain: from 4 to 0\nmoved nNvlDomains: from 0 to 4", false},
		"a field's type":       {"tuner_v5.h", "int maxRanksPerNvlDomain", "float maxRanksPerNvlDomain", "changed maxRanksPerNvlDomain: float, 4 bytes at 8, was int, 4 bytes at 8", false},
		"its sign":             {"tuner_v5.h", "int maxRanksPerNvlDomain", "unsigned maxRanksPerNvlDomain", "changed maxRanksPerNvlDomain: unsigned", false},
		"its size":             {"tuner_v5.h", "int maxRanksPerNvlDomain", "short maxRanksPerNvlDomain", "changed maxRanksPerNvlDomain: short, 2 bytes at 8, was int, 4 bytes at 8", false},
		"its name":             {"tuner_v5.h", "int maxRanksPerNvlDomain", "int max", "added max: int, 4 bytes at 8\nremoved maxRanksPerNvlDomain: int, 4 bytes at 8", false},
		"its type's name":      {"tuner_v5.h", "int maxRanksPerNvlDomain", "int32_t maxRanksPerNvlDomain", "renamed maxRanksPerNvlDomain: int32_t, was int", true},
		"an argument more":     {"tuner_v5.h", "int* nChannels);", "int* nChannels, int more);", "changed getCollInfo: takes int more too, last", false},
		"more in the middle":   {"tuner_v5.h", "float** collCostTable, int", "float** collCostTable, void* a, void* b, int", "changed getCollInfo: takes void* a, void* b too, before numAlgo", false},
		"an argument less":     {"tuner_v5.h", " int regBuff,", "", "changed getCollInfo: no longer takes int regBuff", false},
		"an argument's type":   {"tuner_v5.h", "size_t nBytes", "int nBytes", "changed getCollInfo: nBytes is int, was size_t", false},
		"arguments in turn":    {"tuner_v5.h", "int numAlgo, int numProto", "int numProto, int numAlgo", "changed getCollInfo: numAlgo is at another place", false},
		"an argument's name":   {"tuner_v5.h", "size_t nBytes", "size_t bytes", "renamed getCollInfo: nBytes is called bytes", true},
		"constant":             {"tuner_v5.h", "(*finalize)(void* context)", "(*finalize)(const void* context)", "changed finalize: context is const void*, was void*", false},
		"a result":             {"tuner_v5.h", "ncclResult_t (*finalize)", "void (*finalize)", "changed finalize: returns void, was ncclResult_t", false},
		"a function more":      {"tuner_v5.h", "(*finalize)(void* context);", "(*finalize)(void* context);\n  ncclResult_t (*more)(int a);", "added more: (int a) at 32", false},
		"a function less":      {"tuner_v5.h", "  ncclResult_t (*finalize)(void* context);\n", "", "removed finalize: (void* context) at 24", false},
		"no function":          {"tuner_v5.h", "ncclResult_t (*finalize)(void* context);", "long finalize;", "changed finalize: long, 8 bytes at 24, was ncclResult_t (*)(void* context), 8 bytes at 24", false},
		"an array":             {"net_v9.h", "PER_NIC_V9 4", "PER_NIC_V9 6", "changed vProps: ncclNetVDeviceProps_v9_t, 28 bytes at 64, was ncclNetVDeviceProps_v9_t, 20 bytes at 64\nmoved maxP2pBytes: from 88 to 96\nmoved maxCollBytes: from 96 to 104\nchanged devs: int[6], 24 bytes at 4, was int[4], 16 bytes at 4\nchanged NCCL_NET_MAX_DEVS_PER_NIC_V9: 6, was 4", false},
		"a member of a union":  {"profiler_v3.h", "uint8_t channelId;\n    } kernelCh", "uint64_t channelId;\n    } kernelCh", "changed kernelCh: struct, 8 bytes at 24, was struct, 1 byte at 24\nchanged kernelCh.channelId: uint64_t, 8 bytes at 24, was uint8_t, 1 byte at 24", false},
		"a union":              {"profiler_v3.h", "typedef union {", "typedef struct {", "changed -: struct align 8, was union align 8\nmoved proxyCtrl: from 0 to 16\nmoved proxyCtrl.appendedProxyOps: from 0 to 16", false},
		"a value more":         {"common.h", "ncclTimeout = 8, ", "ncclTimeout = 8, ncclMore = 20, ", "added ncclMore: 20", false},
		"a value":              {"common.h", "ncclTimeout = 8, ", "ncclTimeout = 20, ", "changed ncclTimeout: 20, was 8", false},
		"a value less":         {"common.h", "ncclTimeout = 8, ", "", "removed ncclTimeout: 8", false},
		"a limit":              {"common.h", "#define NCCL_NET_MAX_REQUESTS 32", "#define NCCL_NET_MAX_REQUESTS 64", "changed NCCL_NET_MAX_REQUESTS: 64, was 32", false},
		"a limit more":         {"common.h", "#define NCCL_PTR_HOST", "#define NCCL_NET_MORE 1\n#define NCCL_PTR_HOST", "added NCCL_NET_MORE: 1", false},
		"a limit less":         {"common.h", "#define NCCL_PTR_DMABUF 0x4", "", "removed NCCL_PTR_DMABUF: 4", false},
		"a function's typedef": {"common.h", "ncclDebugLogLevel level, unsigned long flags", "ncclDebugLogLevel level, unsigned flags", "changed -: flags is unsigned int, was unsigned long", false},
		"its argument's name":  {"common.h", "ncclDebugLogLevel level, unsigned long flags", "ncclDebugLogLevel level, unsigned long bits", "renamed -: flags is called bits", true},
		"a comment":            {"tuner_v5.h", "no call of it follows", "no call follows", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ours(t, "a")
			ours(t, "b")
			path := filepath.Join("b", c.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(b), c.from) {
				t.Fatalf("%s has no %q", c.file, c.from)
			}
			put(t, path, strings.Replace(string(b), c.from, c.to, 1))
			r := ask(t, "a/"+c.file, path)
			got, want := told(r.(*Diff)), strings.Split(c.want, "\n")
			if c.want == "" {
				want = nil
			}
			for i, w := range want {
				if i >= len(got) || !strings.HasPrefix(got[i], w) {
					t.Errorf("told %q, want %q", got, want)
					break
				}
			}
			if len(got) != len(want) {
				t.Errorf("told %q, want %q", got, want)
			}
			if r.Differs() == c.names {
				t.Errorf("it differs: %t", r.Differs())
			}
		})
	}
}

// told lists what a difference says, what is said twice only once.
func told(d *Diff) (list []string) {
	add := func(ts []Type) {
		for _, x := range ts {
			for _, c := range x.Changes {
				if says := fmt.Sprintf("%s %s: %s", c.What, c.Member, c.Says); !slices.Contains(list, says) {
					list = append(list, says)
				}
			}
		}
	}
	for _, p := range d.Pairs {
		add(p.Types)
	}
	add(d.Shared)
	return list
}

// What cannot be carried out is refused, with the value and what to do.
func TestRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "net_v3.h", "typedef struct { const char* name;\n  what is this;\n} ncclNet_v3_t;\n")
	put(t, "loop.h", "#include \"loop.h\"\ntypedef struct { const char* name; } ncclNet_v3_t;\n")
	put(t, "binary.h", "\x00\x01\x02ncclNet_v3_t")
	put(t, "empty.h", "\n")
	put(t, "large.h", strings.Repeat("/* much */\n", 1<<17))
	put(t, "none/readme.txt", "nothing")
	put(t, "locked.h", "typedef int x;\n")
	ours(t, "ours")
	if err := os.Chmod("locked.h", 0); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("fifo.h", 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"nets v8":                    `"nets" is no family (net, collNet, profiler, tuner), no release (as 2.22.3) and no file`,
		"net v1":                     "this build has no net v1: it has v2 to v",
		"net v8 v999":                "this build has no net v999: it has v2 to v",
		"ncclTuner_v1":               "this build has no tuner v1: it has v2 to v",
		"net x":                      `behind net stands "x": name a version, as in "net v8"`,
		"net v8 tuner":               `behind tuner stands nothing: name a version`,
		"net v8 tuner v2":            `net v8 and tuner v2 are of different families, whose functions have nothing in common: name two versions of one, as in "net v8 v9"`,
		"ncclNet_v8 ncclProfiler_v2": "net v8 and profiler v2 are of different families",
		"net v8 v9 v10":              "3 things to compare, net v8 v9 v10: name two at most",
		"2.22.4":                     `there is no NCCL release "2.22.4" with plugins; known are 2.4.2 to `,
		"2.22.3 2.22.9":              "nearest to it 2.22.3 and 2.23.4",
		"2.22.3 net v8":              "NCCL 2.22.3 and net v8 cannot be compared",
		"2.22.3 ours":                "NCCL 2.22.3 and ours cannot be compared",
		"nowhere/net_v3.h":           "there is no file or folder nowhere/net_v3.h: name a header, or a folder of them",
		"net_v3.h":                   "net_v3.h:2:",
		"net v3 net_v3.h":            "net_v3.h:2:",
		"loop.h":                     "includes itself",
		"binary.h":                   "binary.h:1:1: byte 0x00 in a header",
		"empty.h":                    "empty.h declares nothing that could be compared",
		"large.h":                    "large.h has 1441792 bytes, and a header of plugins has at most 1048576",
		"none":                       "none: no header here defines ncclNet_vN_t",
		"fifo.h":                     "fifo.h is neither a file nor a folder",
		"tuner v3 ours/net_v9.h":     "ours/net_v9.h declares no table of tuner: name a header that does, or two headers",
	} {
		if r, err := Ask(strings.Fields(call)); err == nil {
			t.Errorf("weft abi %s is answered:\n%s", call, written(t, r, "text"))
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("weft abi %s: %q, want %q", call, err, want)
		}
	}
	if _, err := Ask([]string{"locked.h"}); os.Getuid() != 0 && err == nil {
		t.Error("a header that may not be read is answered for")
	}
}

// The names of JSON are what scripts count on: one that goes needs another schema.
func TestSchema(t *testing.T) {
	for call, want := range map[string]string{
		"":            "schema tables releases",
		"2.22.3":      "schema release date lookups variables limits",
		"net v8":      "schema family version symbol functions bytes asked taken types",
		"net v8 v9":   "schema old new differ tables shared",
		"2.22.3 2.28": "schema old new differ lookups variables tables shared",
	} {
		var got map[string]any
		if err := json.Unmarshal([]byte(written(t, ask(t, strings.Fields(call)...), "json")), &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(want) {
			if got[name] == nil {
				t.Errorf("weft abi --json %s has no %q", call, name)
			}
		}
		if s, ok := got["schema"].(string); !ok || !strings.HasPrefix(s, "weft.abi.") || !strings.HasSuffix(s, "/1") {
			t.Errorf("weft abi --json %s: schema %v", call, got["schema"])
		}
	}
}
