// Package golden compares what a test has made with what a file of the repository has.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is go test's flag -update: files are written instead.
var Update = flag.Bool("update", false, "write what tests compare with")

// File compares a text with that of a file, or writes it.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is not what came out (-want +got); go test with -update writes it:\n%s", path, d)
	}
}
