package record

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/record/format"
)

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	f, err := create(dir, 3<<20, "the build")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(f.mem)
	at, err := os.Stat(f.path)
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
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	chunks := binary.LittleEndian.Uint32(text[format.OffChunks:])
	if string(text[:8]) != format.Magic || len(text) != format.ChunksAt+int(chunks)*format.ChunkBytes || len(text) > 3<<20 {
		t.Errorf("%d bytes, %d chunks, begin %q", len(text), chunks, text[:8])
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
			f, err := create(c.in(dir), c.bytes, "")
			if err == nil {
				t.Fatalf("made %s", f.path)
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

// A process has one file, however many ask for it.
func TestOpen(t *testing.T) {
	c := Config{Dir: t.TempDir(), Bytes: 2 << 20, Build: "b", Log: report.Discard{}}
	first, err := Open(c)
	if err != nil || !On() {
		t.Fatal(err, On())
	}
	second, err := Open(Config{Dir: "/nowhere", Log: report.Discard{}})
	if err != nil || second != first {
		t.Errorf("a second file %q, %v", second, err)
	}
	if a, b := Name("one text"), Name("one text"); a == 0 || a != b || Name("") != 0 || Name(strings.Repeat("x", 500)) == 0 {
		t.Errorf("names %d and %d", a, b)
	}
	Keep(format.Record{Kind: format.Comm, Comm: 7, A: 1}, false)
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if r := text[format.ChunksAt+format.RecordBytes:]; r[4] != byte(format.Comm) || binary.LittleEndian.Uint16(r[6:]) != 7 {
		t.Errorf("the first record is % x", r[:64])
	}
}
