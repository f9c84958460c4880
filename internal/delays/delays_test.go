package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestRewrite(t *testing.T) {
	const name = "testdata/rewrite.txtar"
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "want/") {
			continue
		}
		fresh, err := rewrite(f.Name, f.Data)
		if err != nil {
			t.Fatal(err)
		}
		got.Files = append(got.Files, f, txtar.File{Name: "want/" + f.Name, Data: fresh})
		if in, out := strings.Count(string(f.Data), "\n"), strings.Count(string(fresh), "\n"); fresh != nil && in != out {
			t.Errorf("%s has %d lines and gets %d: messages would name the wrong ones", f.Name, in, out)
		}
		if again, err := rewrite(f.Name, fresh); fresh != nil && (err != nil || again == nil) {
			t.Errorf("%s does not parse any more: %v", f.Name, err)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(got), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); diff != "" {
		t.Error(diff)
	}
}

func TestRewriteRefusesWhatIsNoGo(t *testing.T) {
	if _, err := rewrite("x.go", []byte("package p\nfunc {")); err == nil || !strings.Contains(err.Error(), "x.go:2") {
		t.Errorf("got %v", err)
	}
}

// What the golden files cannot show: the copies of the product compile, and they are what the go command takes.
func TestProductBuildsWithDelays(t *testing.T) {
	list, err := write(t.TempDir(), product)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatal(err)
	}
	if len(overlay.Replace) < 10 {
		t.Errorf("the overlay has %d files: does the rewriter look in the wrong place?", len(overlay.Replace))
	}
	cmd := exec.Command("go", "list", "-overlay", list, "-export", "-deps", "-f", "{{.ImportPath}}", "weft/transport/...", "weft/plugin/...")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	if !strings.Contains(string(out), "weft/internal/delays/pause\n") {
		t.Errorf("%s: nothing imports the pauses: the go command did not take the overlay", cmd)
	}
}
