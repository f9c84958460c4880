package emit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"weft/gen/output"
	"weft/gen/parse"
)

// TestAdditions adds to every place at once where a newer header may add, and
// requires C and Go that compile with the hand-written adapters as they are.
func TestAdditions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, tree fstest.MapFS)
		want   []string // in the files or the notes
		not    []string // in the files that serve a host
	}{
		{"every function gains a parameter at its end", func(t *testing.T, tree fstest.MapFS) {
			gain(tree, nextVersion(t, tree), `($2, size_t bonus);`)
		}, []string{
			"); weft_isend does not take it, and it is dropped: have it take it, or write: drop net v13.. isend.bonus -- WHY", "); weft_net_setNetAttr does not take it, and it is dropped: have it take it, or write: drop net v13.. setNetAttr.bonus -- WHY",
			"weft_net_connect(ctx, dev, handle, sendComm, NULL, 0, NULL)", // the adapters' call
			"weft_net_listen((uintptr_t)ctx, dev, handle, (uintptr_t*)listenComm, 0)", "Bonus      uint64",
			"bonus of isend is 0", "closeSend(sendComm, (size_t){0});", // the host's calls
		}, nil},
		{"every function gains a parameter at its beginning", func(t *testing.T, tree fstest.MapFS) {
			gain(tree, nextVersion(t, tree), `(int16_t bonus, $2);`)
		}, []string{"int weft_net_listen(int16_t bonus, uintptr_t ctx, int dev", "; weft_test does not take it",
			"int weft_net_setNetAttr(uintptr_t ctx, ncclNetAttr_cur_t* netAttr);"}, nil},
		{"a table without functions that it could lose", func(t *testing.T, tree fstest.MapFS) {
			name := nextVersion(t, tree)
			edit(t, tree, name, "  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);\n", "")
		}, []string{".irecvConsumed = NULL"}, nil},
		{"a function more, and the types of the version before", func(t *testing.T, tree fstest.MapFS) {
			name := nextVersion(t, tree)
			edit(t, tree, name, "  ncclResult_t (*finalize)(void* ctx);\n", "  ncclResult_t (*finalize)(void* ctx);\n  ncclResult_t (*sweep)(void* ctx, int how);\n")
			edit(t, tree, name, "typedef ncclNetDeviceHandle_v12_t ncclNetDeviceHandle_v13_t;\n\n", "")
			tree[name] = &fstest.MapFile{Data: bytes.ReplaceAll(tree[name].Data, []byte("ncclNetDeviceHandle_v13_t"), []byte("ncclNetDeviceHandle_v12_t"))}
		}, []string{`"sweep is not called"`, "typedef ncclNetDeviceHandle_v12_t ncclNetDeviceHandle_v13_t;"}, nil},
		{"profiler v7, known from a fork", profilerV7,
			[]string{"ncclProfiler_v7;", "KernelPhase() *ProfilerEventDescrV7KernelPhase", "to->kernelPhase.phaseId = from->kernelPhase.phaseId;"},
			[]string{"to->coll.kernelVariant", "to->kernelPhase"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := realTree(t)
			c.change(t, tree)
			files, text := generated(t, tree)
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is nowhere", w)
				}
			}
			for _, w := range c.not {
				for _, f := range files {
					if !strings.Contains(f.Path, "zz_chain") && strings.Contains(string(f.Data), w) {
						t.Errorf("%q should not be in %s", w, f.Path)
					}
				}
			}
			if err := TypeCheck("../..", files); err != nil {
				t.Error(err)
			}
			compile(t, tree, files)
		})
	}
}

// gain rewrites the parameters of every function of the net table in a header.
func gain(tree fstest.MapFS, name, params string) {
	text := string(tree[name].Data)
	begin := strings.Index(text, "/* ncclNetPlugin_v13 */")
	end := strings.Index(text, "} ncclNet_v13_t;")
	slots := regexp.MustCompile(`(\(\*\w+\))\(([^;]*)\);`).ReplaceAllString(text[begin:end], "$1"+params)
	tree[name] = &fstest.MapFile{Data: []byte(text[:begin] + slots + text[end:])}
}

// profilerV7 is the profiler of NCCLX 2.31: tags, kernel variants and phases.
// It is exported once NVIDIA's header is there.
func profilerV7(t *testing.T, tree fstest.MapFS) {
	const name = "headers/nccl/profiler_v7.h"
	text := strings.NewReplacer("_v6", "_v7", "_V6", "_V7", `"profiler_v5.h"`, `"profiler_v6.h"`, "StateArgs_v5_t", "StateArgs_v6_t").
		Replace(string(tree["headers/nccl/profiler_v6.h"].Data))
	tree[name] = &fstest.MapFile{Data: []byte(text)}
	for _, member := range []string{"collApi", "p2pApi", "p2p", "ceColl"} {
		edit(t, tree, name, "    } "+member+";", "      uint64_t userTag;\n    } "+member+";")
	}
	edit(t, tree, name, "    } coll;", "      const char* kernelVariant;\n      bool isSymColl;\n      uint64_t userTag;\n    } coll;")
	edit(t, tree, name, "  };\n} ncclProfilerEventDescr_v7_t;",
		"    struct {\n      uint8_t channelId;\n      uint8_t phaseId;\n      const char* phaseName;\n      uint64_t pTimer;\n    } kernelPhase;\n  };\n} ncclProfilerEventDescr_v7_t;")
}

// generated runs the generator; the text is all files and the notes.
func generated(t *testing.T, tree fstest.MapFS) ([]output.File, string) {
	t.Helper()
	headers, err := tree.Sub("headers")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := parse.NCCL(headers)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Plan(unit, tree)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(unit, tree)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(p.Notes, "\n")
	for _, f := range files {
		text += string(f.Data)
	}
	return files, text
}

// TestErrorsNameTheRule breaks the C of a rule: the compiler must point there.
func TestErrorsNameTheRule(t *testing.T) {
	tree := realTree(t)
	const rules = "gen/rules/net.rules"
	edit(t, tree, rules, "props_cur.ptrSupport &=", "props_cur.ptrSuport &=")
	before, _, _ := strings.Cut(string(tree[rules].Data), "ptrSuport")
	want := fmt.Sprintf("%s:%d:", rules, strings.Count(before, "\n")+1)
	files, _ := generated(t, tree)
	if out := syntax(t, tree, files); !strings.Contains(out, want) {
		t.Errorf("the compiler says\n%s\nwant %s", out, want)
	}
}

func compile(t *testing.T, tree fstest.MapFS, files []output.File) {
	t.Helper()
	if out := syntax(t, tree, files); out != "" {
		t.Error(out)
	}
}

// syntax gives the emitted C, the hand-written adapters and the host's tables
// to the compiler, and returns what it says.
func syntax(t *testing.T, tree fstest.MapFS, files []output.File) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, data []byte) {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range tree {
		put(name, f.Data)
	}
	for _, f := range files {
		put(f.Path, f.Data)
	}
	for _, glob := range []string{"compat/*.[ch]", "plugin/chain.h", "tools/host/*.inc", "tools/host/host.h", "tools/host/tables.c"} {
		hand, err := filepath.Glob("../../" + glob)
		if err != nil || len(hand) == 0 {
			t.Fatalf("%s: %v, %d files", glob, err, len(hand))
		}
		for _, name := range hand {
			if base := filepath.Base(name); !strings.HasPrefix(base, "zz_") {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				put(filepath.Join(filepath.Dir(glob), base), data)
			}
		}
	}
	sources, err := filepath.Glob(filepath.Join(dir, "compat", "*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("%v, %d files", err, len(sources))
	}
	args := append([]string{"-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Iheaders", "-Iplugin", "-Itransport/fastpath", "-Iguest", "-Icompat", "-Iheaders/nccl", "tools/host/tables.c"}, sources...)
	cmd := exec.Command("gcc", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// TestDecisions drops a parameter by rule: it is no longer for review.
func TestDecisions(t *testing.T) {
	tree := realTree(t)
	edit(t, tree, nextVersion(t, tree), "size_t size, int tag,", "size_t size, uint64_t hints, int tag,")
	tree["VERSIONING.md"] = &fstest.MapFile{Data: []byte(matrixBegin + matrixEnd)}
	for _, rule := range []string{"", "drop net v13.. isend.hints -- a hint\n"} {
		tree["gen/rules/x.rules"] = &fstest.MapFile{Data: []byte(rule)}
		files, _ := generated(t, tree)
		lines, err := Undecided(tree, files)
		if err != nil || len(lines) == 0 {
			t.Fatalf("%d lines for review, %v", len(lines), err)
		}
		said := strings.Contains(strings.Join(lines, "\n"), "net v13 isend: has a new hints (nccl/net_v13.h:")
		if said != (rule == "") {
			t.Errorf("with the rule %q: isend.hints is for review: %t\n%s", rule, said, strings.Join(lines, "\n"))
		}
		for _, f := range files {
			tree[f.Path] = &fstest.MapFile{Data: f.Data}
		}
		if again, err := Undecided(tree, files); err != nil || len(again) > 0 {
			t.Errorf("what was listed is listed again: %q, %v", again, err)
		}
		tree["VERSIONING.md"] = &fstest.MapFile{Data: []byte(matrixBegin + matrixEnd)}
	}
}
