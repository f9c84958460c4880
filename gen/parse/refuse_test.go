package parse

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each header of an archive is parsed alone; the .want beside it is what it is
// refused with.
func TestRefusals(t *testing.T) {
	archives, err := filepath.Glob("testdata/refuse/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, f := range a.Files {
			want[f.Name] = string(f.Data)
		}
		var after []txtar.File
		for _, f := range a.Files {
			base, isHeader := strings.CutSuffix(f.Name, ".h")
			if !isHeader {
				continue
			}
			golden := base + ".want"
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar")+"/"+base, func(t *testing.T) {
				got := refusal(t, f.Name, f.Data)
				if !*update {
					if diff := cmp.Diff(want[golden], got); diff != "" {
						t.Error(diff)
					}
				}
				after = append(after, f, txtar.File{Name: golden, Data: []byte(got)})
			})
		}
		if *update {
			a.Files = after
			if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func refusal(t *testing.T, name string, text []byte) string {
	t.Helper()
	_, err := Headers(Options{FS: fstest.MapFS{name: {Data: text}}, Headers: []string{name}, Arch: "amd64"})
	if err == nil {
		t.Error("accepted")
		return ""
	}
	var refused Refusals
	if !errors.As(err, &refused) {
		t.Errorf("not a refusal: %v", err)
	}
	for _, r := range refused {
		if r.Pos.File != name || r.Pos.Line == 0 {
			t.Errorf("%v: not a place in %s", r, name)
		}
	}
	return err.Error() + "\n"
}
