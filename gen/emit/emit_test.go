package emit

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weft/gen/parse"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden feeds the headers and rules of each testdata/*.txtar to the
// generator; the files under want/ are what it must write, want/notes what it
// must tell the reviewer.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("testdata/*.txtar: %v, %d cases", err, len(cases))
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in, want := &txtar.Archive{Comment: ar.Comment}, map[string]string{}
			root := fstest.MapFS{}
			for _, f := range ar.Files {
				if out, is := strings.CutPrefix(f.Name, "want/"); is {
					want[out] = string(f.Data)
					continue
				}
				in.Files = append(in.Files, f)
				root[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			got := generate(t, root)
			if again := generate(t, root); cmp.Diff(got, again) != "" {
				t.Errorf("two runs differ: %s", cmp.Diff(got, again))
			}
			if *update {
				for _, n := range golden {
					if text, is := got[n]; is {
						in.Files = append(in.Files, txtar.File{Name: "want/" + n, Data: []byte(text)})
					}
				}
				if err := os.WriteFile(name, txtar.Format(in), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for n, w := range want {
				if diff := cmp.Diff(w, got[n]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", n, diff)
				}
			}
			if len(want) == 0 {
				t.Error("no want/ files: run go test ./gen/emit -update and read what it wrote")
			}
		})
	}
}

// golden are the files kept in the cases; the rest follows from them.
var golden = []string{
	"notes", "abi/zz_iface_net.go", "abi/zz_net_v2.go", "plugin/zz_slow.h", "plugin/zz_exports.go",
	"compat/zz_calls.h", "compat/zz_net_v1.c", "compat/zz_net_v2.c", "lib/zz_exports.map",
	"plugin/zz_chain.h", "compat/zz_chain_profiler_v1.c", "compat/zz_chain_profiler_v2.c",
}

func generate(t *testing.T, root fs.FS) map[string]string {
	t.Helper()
	headers, err := fs.Sub(root, "headers")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := parse.NCCL(headers)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Plan(unit, root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(unit, root)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"notes": strings.Join(p.Notes, "\n") + "\n"}
	for _, f := range files {
		got[f.Path] = string(f.Data)
	}
	return got
}
