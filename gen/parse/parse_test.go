package parse

import (
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"weft/gen/model"
	"weft/headers"
	"weft/headers/facts"
)

func nccl(t *testing.T) *model.Unit {
	t.Helper()
	u, err := NCCL(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// measured turns a parsed type into the form that the facts have.
func measured(td *model.Typedef) facts.Type {
	f := facts.Type{Type: td.Name, Kind: td.Type.Kind.String(), Size: td.Type.Size}
	if td.Type.Name != td.Name {
		f.Alias = td.Type.String()
	}
	switch {
	case td.Type.IsFuncPtr():
		f.Kind = "callback"
	case td.Type.Record != nil && f.Alias == "":
		f.Members = members(td.Type.Record, "", 0)
	}
	return f
}

func members(r *model.Record, path string, base int64) []facts.Member {
	var ms []facts.Member
	for _, f := range r.Fields {
		p := path
		if f.Name != "" {
			p = strings.TrimPrefix(path+"."+f.Name, ".")
			ms = append(ms, facts.Member{Member: p, Offset: base + f.Offset, Size: f.Type.Size, Type: f.Type.String()})
		}
		if in := f.Type.Record; in != nil && in.Name == "" {
			ms = append(ms, members(in, p, base+f.Offset)...)
		}
	}
	return ms
}

// Everything the parser finds is what was measured, and all of it.
func TestAgainstFacts(t *testing.T) {
	u := nccl(t)
	want, err := facts.Types(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`^nccl(Net|CollNet|Profiler)\w*_v\d+_t$|^ncclDebugLogger_t$|^ncclProfilerCallback_t$`)
	var got []facts.Type
	for _, td := range u.Typedefs {
		if ours.MatchString(td.Name) {
			got = append(got, measured(td))
		}
	}
	for _, list := range [][]facts.Type{got, want} {
		sort.Slice(list, func(i, j int) bool { return list[i].Type < list[j].Type })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers/facts (-) and headers/nccl (+) differ:\n%s", diff)
	}
}

func TestEnumsAgainstFacts(t *testing.T) {
	u := nccl(t)
	want, err := facts.Enums(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	var got []facts.Enum
	for _, e := range u.Enums {
		f := facts.Enum{Enum: e.Name, Size: e.Size, Values: map[string]int64{}}
		if e.Name == "" {
			f.Enum = "enum:" + e.Values[0].Name
		}
		for _, v := range e.Values {
			f.Values[v.Name] = v.Value
		}
		got = append(got, f)
	}
	sort.Slice(got, func(i, j int) bool { return got[i].Enum < got[j].Enum })
	sort.Slice(want, func(i, j int) bool { return want[i].Enum < want[j].Enum })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers/facts (-) and headers/nccl (+) differ:\n%s", diff)
	}
}

func TestMacrosAgainstFacts(t *testing.T) {
	u := nccl(t)
	want, err := facts.Macros(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	var got []facts.Macro
	for _, m := range u.Macros {
		switch m.Kind {
		case model.MacroInt:
			got = append(got, facts.Macro{Macro: m.Name, Value: m.Int})
		case model.MacroUint:
			got = append(got, facts.Macro{Macro: m.Name, Value: int64(m.Uint)})
		}
	}
	sort.Slice(got, func(i, j int) bool { return got[i].Macro < got[j].Macro })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers/facts (-) and headers/nccl (+) differ:\n%s", diff)
	}
}

// The tables are those that NCCL looks up, in order, without a gap.
func TestTables(t *testing.T) {
	var got []string
	for _, tab := range nccl(t).Tables {
		got = append(got, tab.Symbol+" "+tab.Record.Name+" "+tab.Header)
	}
	var want []string
	for v := 2; v <= 12; v++ {
		want = append(want, fmt.Sprintf("ncclNetPlugin_v%d ncclNet_v%[1]d_t nccl/net_v%[1]d.h", v))
	}
	for v := 3; v <= 12; v++ {
		want = append(want, fmt.Sprintf("ncclCollNetPlugin_v%d ncclCollNet_v%[1]d_t nccl/net_v%[1]d.h", v))
	}
	for v := 1; v <= 6; v++ {
		want = append(want, fmt.Sprintf("ncclProfiler_v%d ncclProfiler_v%[1]d_t nccl/profiler_v%[1]d.h", v))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
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
