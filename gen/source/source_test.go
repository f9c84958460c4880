package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/gen/parse"
	"weft/headers"
)

const table = "typedef struct { const char* name; ncclResult_t (*init)(void* log); } ncclNet_v3_t;\n"

// One header is read whatever lies beside it, and whatever it is called; of a
// folder nothing is left out in silence.
func TestOneHeader(t *testing.T) {
	ours, err := parse.NCCL(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("net_v3.h", table, 0o644)
	unusual := write("net_v3.hpp.orig", table, 0o644)
	common := write("shared.h", "typedef enum { one = 1 } number_t;\n", 0o644)
	write("locked.h", table, 0)
	write("closed/net_v4.h", table, 0o644)
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "closed"), 0o755) })
	for path, tables := range map[string]int{plain: 1, unusual: 1, common: 0} {
		s, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		u, err := s.Parse(ours)
		if err != nil || len(u.Tables) != tables {
			t.Errorf("%s: %v, want %d tables", path, err, tables)
		}
		if took := strings.Join(s.Took(), " "); tables > 0 && took != "ncclResult_t" {
			t.Errorf("%s took %q", path, took)
		}
	}
	if _, err := Open(dir); os.Getuid() != 0 && err == nil {
		t.Error("a folder with headers that may not be read is read")
	}
}
