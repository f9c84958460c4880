package view

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"weft/gen/parse"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var header = Header{Path: "p/w.h", Package: "p", Prefix: "wf"}

func views(t *testing.T, text string) (goFile, cFile []byte, err error) {
	t.Helper()
	u, err := parse.Fastpath(fstest.MapFS{header.Path: {Data: []byte(text)}}, header.Path)
	if err != nil {
		t.Fatal(err)
	}
	goFile, err = mirror(header, u)
	return goFile, assertions(header, u), err
}

// A header in, its two views out; both compile, the Go one on both machines.
func TestViews(t *testing.T) {
	const name = "testdata/view.txtar"
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	goFile, cFile, err := views(t, string(a.Files[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: a.Comment, Files: []txtar.File{a.Files[0], {Name: "zz_view.go", Data: goFile}, {Name: "zz_assert.c", Data: cFile}}}
	if *update {
		if err := os.WriteFile(name, txtar.Format(got), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); diff != "" {
		t.Error(diff)
	}

	dir := t.TempDir()
	for _, f := range append(got.Files, txtar.File{Name: "go.mod", Data: []byte("module p\n\ngo 1.24\n")}) {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, arch := range parse.Arches {
		cmd := exec.Command("go", "build", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
	compile := func() error {
		return exec.Command("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", filepath.Join(dir, "zz_assert.c")).Run()
	}
	if err := compile(); err != nil {
		t.Errorf("gcc on the assertions: %v", err)
	}
	wrong := strings.Replace(string(a.Files[0].Data), "uint32_t state;", "uint64_t state;", 1)
	if err := os.WriteFile(filepath.Join(dir, "w.h"), []byte(wrong), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := compile(); err == nil {
		t.Error("the assertions accept another layout")
	}
}

// What has no mirror is refused with its place.
func TestNoMirror(t *testing.T) {
	for text, want := range map[string]string{
		"union wf_u { int a; float b; };":                                        "p/w.h:1:1: a union has no mirror in Go",
		"struct wf_s { union { int a; float b; }; };":                            "an anonymous struct or union has no mirror in Go",
		"struct wf_s { struct { int a; } in; };":                                 "a struct declared in place has no mirror in Go",
		"struct wf_in { _Alignas(64) int a; }; struct wf_s { struct wf_in i; };": "Go cannot align a struct to more than 8 bytes",
		"#define WF_A 1\n#define WF_a 2\nstruct wf_s { int a; };":                "WF_a and WF_A are both wfA in Go",
	} {
		_, _, err := views(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
