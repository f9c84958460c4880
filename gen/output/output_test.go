package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func put(t *testing.T, root, name, text string) {
	t.Helper()
	p := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Check names what Write then changes, and only that; afterwards nothing.
func TestCheckAndWrite(t *testing.T) {
	root := t.TempDir()
	banner := "// " + Banner + "\n"
	put(t, root, "a/zz_same.go", banner+"same\n")
	put(t, root, "a/zz_old.go", banner+"one\ntwo\n")
	put(t, root, "b/zz_stale.c", "/* "+Banner+" */\n")
	put(t, root, "b/zz_hand.c", "/* written by hand */\n")
	put(t, root, "b/testdata/zz_golden.go", banner)
	put(t, root, ".cache/zz_other.go", banner)
	files := []File{
		{"c/zz_new.go", []byte(banner)},
		{"a/zz_same.go", []byte(banner + "same\n")},
		{"a/zz_old.go", []byte(banner + "one\n2\n")},
	}
	err := Check(root, files)
	if err == nil {
		t.Fatal("Check accepts a tree that is not up to date")
	}
	want := strings.Join([]string{
		"a/zz_old.go: differs from line 3 on",
		"c/zz_new.go: missing",
		"b/zz_stale.c: nothing generates it any more",
	}, "\n")
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	touched, err := Write(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/zz_old.go", "c/zz_new.go", "b/zz_stale.c"}, touched); diff != "" {
		t.Error(diff)
	}
	if err := Check(root, files); err != nil {
		t.Errorf("after Write: %v", err)
	}
	if touched, err := Write(root, files); err != nil || len(touched) > 0 {
		t.Errorf("a second Write touches %v, %v", touched, err)
	}
	for _, kept := range []string{"b/zz_hand.c", "b/testdata/zz_golden.go", ".cache/zz_other.go"} {
		if _, err := os.Stat(filepath.Join(root, kept)); err != nil {
			t.Errorf("%s: %v", kept, err)
		}
	}
}
