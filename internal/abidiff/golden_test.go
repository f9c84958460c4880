package abidiff

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/abi.md")

// written is a report in one of its forms: text, table or json.
func written(t *testing.T, r Report, form string) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch form {
	case "text":
		err = r.Text(&b)
	case "table":
		err = r.Markdown(&b)
	case "json":
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		err = e.Encode(r)
	default:
		t.Fatalf("no form %q", form)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each file of testdata is a call, the headers that it names, and what comes of it.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(name)
			if err != nil {
				t.Fatal(err)
			}
			call, ok := strings.CutPrefix(strings.TrimSpace(string(a.Comment)), "weft abi ")
			if !ok {
				t.Fatalf("%s does not begin with a call of weft abi", name)
			}
			t.Chdir(t.TempDir())
			got := &txtar.Archive{Comment: a.Comment}
			var forms []string
			for _, f := range a.Files {
				if filepath.Ext(f.Name) != ".h" {
					forms = append(forms, f.Name)
					continue
				}
				put(t, f.Name, string(f.Data))
				got.Files = append(got.Files, f)
			}
			r, err := Ask(strings.Fields(call))
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range forms {
				got.Files = append(got.Files, txtar.File{Name: form, Data: []byte(written(t, r, form))})
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); d != "" {
				t.Errorf("%s (-want +got); go test ./internal/abidiff -update:\n%s", name, d)
			}
		})
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
