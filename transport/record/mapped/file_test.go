package mapped

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/transport/record/format"
)

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	f, err := Create(Spec{Dir: dir, Suffix: ".rec", Bytes: 3 << 20, Build: "the build", Fill: func(mem []byte) { copy(mem, "begins") }})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(f.Mem)
	at, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if at.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 {
		t.Errorf("modes %v and %v: others may read", at.Mode(), folder.Mode())
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 3<<20 || !strings.HasPrefix(string(text), "begins") || !strings.HasSuffix(f.Path, ".rec") {
		t.Errorf("%s: %d bytes, begin %q", f.Path, len(text), text[:8])
	}
	if pid := binary.LittleEndian.Uint64(text[format.OffPID:]); pid != uint64(os.Getpid()) {
		t.Errorf("pid %d", pid)
	}
	if mono, real := binary.LittleEndian.Uint64(text[format.OffMono:]), binary.LittleEndian.Uint64(text[format.OffReal:]); mono == 0 || real == 0 {
		t.Errorf("clocks %d, %d", mono, real)
	}
	if !strings.HasPrefix(string(text[format.OffBuild:]), "the build\x00") {
		t.Errorf("build %q", text[format.OffBuild:][:20])
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("files %v", names)
	}
}

// Nothing is left of a file that cannot be made, and the error says what to do.
func TestCreateFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int64
		in    func(dir string) string
		limit uint64 // RLIMIT_FSIZE
		want  []string
	}{
		{"folder above is missing", 1 << 20, func(dir string) string { return filepath.Join(dir, "a", "b") }, 0, []string{"no such file", "WEFT_PROFILE_DIR"}},
		{"a file in its place", 1 << 20, func(dir string) string {
			name := filepath.Join(dir, "file")
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return name
		}, 0, []string{"create", "not a directory"}},
		{"no room", 1 << 60, func(dir string) string { return dir }, 0, []string{"no room for", "WEFT_PROFILE_SIZE", "WEFT_PROFILE_DIR"}},
		{"the process's limit", 8 << 20, func(dir string) string { return dir }, 1 << 20, []string{"RLIMIT_FSIZE", "ulimit -f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.limit != 0 {
				var was unix.Rlimit
				if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
					t.Fatal(err)
				}
				if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: c.limit, Max: was.Max}); err != nil {
					t.Fatal(err)
				}
				defer unix.Setrlimit(unix.RLIMIT_FSIZE, &was)
			}
			f, err := Create(Spec{Dir: c.in(dir), Bytes: c.bytes, Lower: "lower WEFT_PROFILE_SIZE, or "})
			if err == nil {
				t.Fatalf("made %s", f.Path)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: %q is missing", err, part)
				}
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*weft*"))
			hidden, _ := filepath.Glob(filepath.Join(dir, ".weft*"))
			if len(left)+len(hidden) != 0 {
				t.Errorf("left behind: %v %v", left, hidden)
			}
		})
	}
}
