package proof

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"weft/gen/model"
	"weft/gen/parse"
	"weft/internal/link"
)

var seed = flag.Uint64("seed", 0, "repeat the invention of an earlier run; 0 draws a new one")

// TestInventedReleases makes up two releases that each only add something,
// regenerates and builds a copy of this tree with them, and moves data through
// both new tables. Then it edits a copied header without regenerating: the next
// build must not be the old one.
func TestInventedReleases(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the library twice; not with -short")
	}
	r := newRand(t, *seed)
	root := copyTree(t, "../..")
	newest := newestVersion(t, root)
	text := read(t, filepath.Join(root, headerOf(newest)))
	var made []*invention
	for v := newest + 1; v <= newest+2; v++ {
		var in *invention
		text, in = invent(t, r, text, v)
		write(t, filepath.Join(root, headerOf(v)), text)
		t.Logf("v%d: function %s, property %s, %s gains %s", v, in.Function, in.Property, in.Slot, in.Param)
		made = append(made, in)
	}
	command(t, root, "go", "run", "./gen")
	command(t, root, "go", "run", "./gen", "-check")

	lib := filepath.Join(root, "dist", "libnccl-net-weft.so")
	build(t, root, lib)
	exported(t, root, lib, made)
	for _, in := range made {
		t.Run(fmt.Sprintf("contract of v%d", in.Version), func(t *testing.T) { contract(t, root, lib, in) })
	}
	t.Run("edited header", func(t *testing.T) { editedHeader(t, root, lib, word(r)+word(r)) })
}

// contract compiles the driver for one invented table and runs it.
func contract(t *testing.T, root, lib string, in *invention) {
	tmpl, err := template.ParseFiles("testdata/contract.c.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var c strings.Builder
	if err := tmpl.Execute(&c, struct {
		*invention
		Calls []call
	}{in, callsOf(t, root, in)}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "contract.c"), c.String())
	command(t, dir, "gcc", "-std=gnu11", "-Wall", "-Wextra", "-I"+filepath.Join(root, "headers"), "-o", "contract", "contract.c", "-ldl")
	cmd := exec.CommandContext(deadline(t, 2*time.Minute), filepath.Join(dir, "contract"), lib)
	cmd.Env = append(os.Environ(), "NCCL_SOCKET_IFNAME=lo")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// call is a function as the driver spells it: the parameters of the last known
// release, and the arguments with the invented ones slipped in.
type call struct{ Name, Params, Args string }

func callsOf(t *testing.T, root string, in *invention) []call {
	unit, err := parse.NCCL(os.DirFS(filepath.Join(root, "headers")))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range unit.Table(model.Net, newestVersion(t, "../..")).Record.Fields {
		if f.Type.IsFuncPtr() {
			for _, p := range f.Type.Elem.Func.Params {
				known[f.Name+"."+p.Name] = true
			}
		}
	}
	var calls []call
	for _, f := range unit.Table(model.Net, in.Version).Record.Fields {
		if !f.Type.IsFuncPtr() || f.Name == in.Function {
			continue
		}
		var params, args []string
		for _, p := range f.Type.Elem.Func.Params {
			if known[f.Name+"."+p.Name] {
				params, args = append(params, p.Name), append(args, p.Name)
			} else {
				args = append(args, "7")
			}
		}
		calls = append(calls, call{f.Name, strings.Join(params, ", "), strings.Join(args, ", ")})
	}
	return calls
}

// exported requires the new tables beside all others, and nothing else.
func exported(t *testing.T, root, lib string, made []*invention) {
	t.Helper()
	facts, err := link.Inspect(lib)
	if err != nil {
		t.Fatal(err)
	}
	want := link.ScriptExports([]byte(read(t, filepath.Join(root, "lib/zz_exports.map"))))
	if got := strings.Join(facts.Exports, " "); got != strings.Join(want, " ") {
		t.Errorf("the library exports\n\t%s\nand the version script says\n\t%s", got, strings.Join(want, " "))
	}
	for _, in := range made {
		if name := model.Net.Symbol(in.Version); !strings.Contains(" "+strings.Join(want, " ")+" ", " "+name+" ") {
			t.Errorf("%s is not exported", name)
		}
	}
}

// editedHeader adds a mark to the header of an old version and builds again.
func editedHeader(t *testing.T, root, lib, mark string) {
	before := read(t, lib)
	if strings.Contains(before, mark) {
		t.Fatalf("the library contains %q already", mark)
	}
	header := filepath.Join(root, headerOf(4))
	write(t, header, strings.Replace(read(t, header), "#endif", "static const char weft_mark[] __attribute__((used)) = \""+mark+"\";\n#endif", 1))
	build(t, root, lib)
	if !strings.Contains(read(t, lib), mark) {
		t.Errorf("%s was edited, and the library is built from the old one", headerOf(4))
	}
}

func build(t *testing.T, root, lib string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := link.Library(link.Options{Root: root, Out: lib, Mode: link.Release}); err != nil {
		t.Fatal(err)
	}
}

func headerOf(v int) string { return fmt.Sprintf("headers/nccl/net_v%d.h", v) }

func newestVersion(t *testing.T, root string) int {
	t.Helper()
	v := 2
	for {
		if _, err := os.Stat(filepath.Join(root, headerOf(v+1))); err != nil {
			return v
		}
		v++
	}
}

// copyTree copies the repository without its history and what was built.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (rel == "dist" || rel != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(deadline(t, 5*time.Minute), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
