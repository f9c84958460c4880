package proof

import (
	"context"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"weft/gen/model"
	"weft/gen/parse"
	"weft/gen/rules"
	"weft/internal/link"
)

var (
	seed  = flag.Uint64("seed", 0, "repeat the invention of an earlier run; 0 draws a new one")
	whole = flag.Bool("whole", false, "run every test with the made-up releases, not those alone that depend on which versions there are")
)

// TestInventedReleases makes up releases that each only add something, and does
// in a copy of this tree what a maintainer does with a new one: drop, regenerate,
// build, and run the bench. One release is dropped first; then, in a fresh copy,
// two at once. Nothing is written by hand but the list of released tables.
func TestInventedReleases(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the library twice; not with -short")
	}
	r := newRand(t, *seed)
	t.Run("one", func(t *testing.T) {
		root, made := invented(t, r, 1)
		command(t, root, "go", "run", "./internal/link/weftlink", "-o", "dist")
		lib := filepath.Join(root, "dist", "lib", link.Name)
		exported(t, root, lib, made)
		contract(t, root, lib, made[0])
		commands(t, root, made[0])
		t.Run("edited header", func(t *testing.T) { editedHeader(t, root, lib, word(r)+word(r)) })
	})
	t.Run("two", func(t *testing.T) {
		root, made := invented(t, r, 2)
		named(t, root, made[len(made)-1])
		promise(t, root, made)
		lib := bench(t, root, made[len(made)-1])
		exported(t, root, lib, made)
		for _, in := range made {
			contract(t, root, lib, in)
		}
	})
}

// invented copies this tree and drops so many releases there.
func invented(t *testing.T, r *rand.Rand, releases int) (root string, made []*invention) {
	t.Helper()
	root = copyTree(t, "../..")
	src := t.TempDir()
	if err := os.CopyFS(src, os.DirFS(filepath.Join(root, headers))); err != nil {
		t.Fatal(err)
	}
	for range releases {
		made = append(made, release(t, r, src))
	}
	command(t, root, "go", "run", "./gen", "drop", src)
	command(t, root, "go", "run", "./gen")
	command(t, root, "go", "run", "./gen", "-check")
	return root, made
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

// witnessed is the version whose calls the driver spells, as tools/host does.
func witnessed(t *testing.T) int {
	set, err := rules.LoadFS(os.DirFS("../rules"), "gen/rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range set.Verb("witness") {
		if r.Family == string(model.Net) {
			n, err := strconv.Atoi(r.Use().Words[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("gen/rules names no witness of net")
	return 0
}

func callsOf(t *testing.T, root string, in *invention) []call {
	unit, err := parse.NCCL(os.DirFS(filepath.Join(root, "headers")))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range unit.Table(model.Net, witnessed(t)).Record.Fields {
		if f.Type.IsFuncPtr() {
			for _, p := range f.Type.Elem.Func.Params {
				known[f.Name+"."+p.Name] = true
			}
		}
	}
	var calls []call
	for _, f := range unit.Table(model.Net, in.Net).Record.Fields {
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
		for _, name := range []string{model.Net.Symbol(in.Net), model.CollNet.Symbol(in.Net), model.Profiler.Symbol(in.Profiler), model.Tuner.Symbol(in.Tuner)} {
			if !slices.Contains(want, name) {
				t.Errorf("%s is not exported", name)
			}
		}
	}
}

// editedHeader adds a mark to the header of an old version and builds again.
func editedHeader(t *testing.T, root, lib, mark string) {
	name := header(filepath.Join(root, headers), "net", 4)
	if strings.Contains(read(t, lib), mark) {
		t.Fatalf("the library contains %q already", mark)
	}
	write(t, name, strings.Replace(read(t, name), "#endif", "static const char weft_mark[] __attribute__((used)) = \""+mark+"\";\n#endif", 1))
	build(t, root, lib)
	if !strings.Contains(read(t, lib), mark) {
		t.Errorf("%s was edited, and the library is built from the old one", name)
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

// headers is the folder of them, from the root.
const headers = "headers/nccl"

// newest is the last version of a header in a folder.
func newest(t *testing.T, dir, stem string) int {
	t.Helper()
	v := 1
	for {
		if _, err := os.Stat(header(dir, stem, v+1)); err != nil {
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
		case d.IsDir() && (rel == "dist" || rel != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".github"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case d.Type()&fs.ModeSymlink != 0: // as it stands
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, filepath.Join(to, rel))
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
	cmd := exec.CommandContext(deadline(t, 45*time.Minute), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS")) // what no version changes is compiled once for all copies
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
