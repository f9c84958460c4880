package link

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The version names the commit in a clone of any depth alike, and an edited tree as such.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	if s := stamp(dir); s != "" {
		t.Errorf("without git: %q", s)
	}
	git := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.invalid"}, args...)...)
		cmd.Dir = in
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, text)
		}
		return strings.TrimSpace(string(text))
	}
	git(dir, "init", "-q")
	for range 3 {
		git(dir, "commit", "-q", "--allow-empty", "-m", "x")
	}
	head := git(dir, "rev-parse", "HEAD")
	want := "-X weft/internal/version.commit=" + head[:12]
	if s := stamp(dir); s != want+" " {
		t.Errorf("%q, want %q", s, want)
	}
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(dir, "clone", "-q", "--depth=1", "file://"+dir, shallow)
	if s := stamp(shallow); s != want+" " {
		t.Errorf("in a shallow clone %q, want %q", s, want)
	}
	git(dir, "tag", "v0.1.0")
	if s := stamp(dir); s != "-X weft/internal/version.commit=v0.1.0 " {
		t.Errorf("at a tag %q", s)
	}
}
