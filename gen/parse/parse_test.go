package parse

import (
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"weft/gen/model"
	"weft/headers"
)

func nccl(t *testing.T) *model.Unit {
	t.Helper()
	u, err := NCCL(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The tables are those that NCCL looks up, in order, without a gap.
func TestTables(t *testing.T) {
	var got []string
	u := nccl(t)
	for _, tab := range u.Tables {
		got = append(got, tab.Symbol+" "+tab.Record.Name+" "+tab.Header)
	}
	var want []string
	for v := 2; v <= newest(t, "net"); v++ {
		want = append(want, fmt.Sprintf("ncclNetPlugin_v%d ncclNet_v%[1]d_t nccl/net_v%[1]d.h", v))
	}
	for v := 3; v <= newest(t, "net"); v++ {
		want = append(want, fmt.Sprintf("ncclCollNetPlugin_v%d ncclCollNet_v%[1]d_t nccl/net_v%[1]d.h", v))
	}
	for v := 1; v <= newest(t, "profiler"); v++ {
		want = append(want, fmt.Sprintf("ncclProfiler_v%d ncclProfiler_v%[1]d_t nccl/profiler_v%[1]d.h", v))
	}
	for v := 2; v <= newest(t, "tuner"); v++ {
		want = append(want, fmt.Sprintf("ncclTunerPlugin_v%d ncclTuner_v%[1]d_t nccl/tuner_v%[1]d.h", v))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// newest is the last version of which there is a header.
func newest(t *testing.T, stem string) int {
	t.Helper()
	names, err := fs.Glob(headers.FS, "nccl/"+stem+"_v*.h")
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, n := range names {
		v, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(n, "nccl/"+stem+"_v"), ".h"))
		if err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		last = max(last, v)
	}
	return last
}

// Parsing needs nothing of the machine: no PATH, no compiler, no /usr/include.
func TestHermetic(t *testing.T) {
	want := nccl(t)
	t.Setenv("PATH", "")
	t.Setenv("C_INCLUDE_PATH", "/nonexistent")
	t.Setenv("CPATH", "/nonexistent")
	t.Chdir(t.TempDir())
	if got := nccl(t); !reflect.DeepEqual(want, got) {
		t.Error(cmp.Diff(want, got))
	}
}

// amd64 and arm64 agree on everything, positions and comments included.
func TestArches(t *testing.T) {
	hs, err := versioned(headers.FS, "nccl")
	if err != nil {
		t.Fatal(err)
	}
	var units []*model.Unit
	for _, arch := range Arches {
		u, err := Headers(Options{FS: headers.FS, Headers: hs, Arch: arch})
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, u)
	}
	if len(units) != 2 || !reflect.DeepEqual(units[0], units[1]) {
		t.Error(cmp.Diff(units[0], units[1]))
	}
}

// The comment above or behind a declaration is found, and no other.
func TestComments(t *testing.T) {
	u := nccl(t)
	net := u.Table(model.Net, 12).Record
	for name, want := range map[string]string{
		"devices":   "Number of devices; they are numbered from 0.",
		"closeSend": "Closes the sending side.",
	} {
		if f, _ := net.Field(name); f == nil || f.Doc != want {
			t.Errorf("%s: comment %q, want %q", name, f.Doc, want)
		}
	}
	props := u.Record("ncclNetProperties_v12_t")
	if f, _ := props.Field("speed"); f.Doc != "Mbit/s" {
		t.Errorf("speed: comment %q", f.Doc)
	}
	if props.Doc != "A device." {
		t.Errorf("properties: comment %q", props.Doc)
	}
}

// No header of ours includes what the sysroot does not have.
func TestHeadersAreFound(t *testing.T) {
	names, err := fs.Glob(headers.FS, "nccl/*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := Headers(Options{FS: headers.FS, Headers: []string{n}, Arch: "amd64"}); err != nil {
			t.Errorf("%s alone: %v", n, err)
		}
	}
}
