package parse

import (
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"weft/gen/lock"
	"weft/gen/model"
	"weft/headers"
	"weft/headers/facts"
)

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

// unwitnessed says, once, which names of a list facts do not have. That passes:
// they came with a header of which nothing was measured yet.
func unwitnessed(t *testing.T, what string, got, facts []string) {
	t.Helper()
	var lack []string
	for _, name := range got {
		if !slices.Contains(facts, name) {
			lack = append(lack, name)
		}
	}
	if len(lack) > 0 {
		t.Logf("unwitnessed %s: %s", what, strings.Join(lack, ", "))
	}
}

// Everything that was measured is what the parser finds, and nothing else is there.
func TestAgainstFacts(t *testing.T) {
	u := nccl(t)
	want, err := facts.Types(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	var names, all []string
	for _, f := range want {
		known[f.Type] = true
		names = append(names, f.Type)
	}
	var got []facts.Type
	for _, td := range u.Typedefs {
		if !model.FamilyType.MatchString(td.Name) && td.Name != "ncclDebugLogger_t" && td.Name != "ncclProfilerCallback_t" {
			continue
		}
		all = append(all, td.Name)
		if known[td.Name] {
			got = append(got, measured(td))
		}
	}
	for _, list := range [][]facts.Type{got, want} {
		sort.Slice(list, func(i, j int) bool { return list[i].Type < list[j].Type })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers/facts (-) and headers/nccl (+) differ:\n%s", diff)
	}
	unwitnessed(t, "types", all, names)
}

func TestEnumsAgainstFacts(t *testing.T) {
	u := nccl(t)
	want, err := facts.Enums(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	var names, all []string
	values := map[string]map[string]int64{}
	for _, f := range want {
		names = append(names, f.Enum)
		for v := range f.Values {
			names = append(names, f.Enum+"."+v)
		}
	}
	for _, e := range u.Enums {
		name := e.Name
		if name == "" {
			name = "enum:" + e.Values[0].Name
		}
		all = append(all, name)
		values[name] = map[string]int64{"": e.Size}
		for _, v := range e.Values {
			all = append(all, name+"."+v.Name)
			values[name][v.Name] = v.Value
		}
	}
	for _, f := range want {
		have := values[f.Enum]
		if have[""] != f.Size {
			t.Errorf("%s has %d bytes, measured are %d", f.Enum, have[""], f.Size)
		}
		for name, v := range f.Values {
			if got, is := have[name]; !is || got != v && !(lock.Counter(name) && got > v) {
				t.Errorf("%s.%s is %d (there: %t), measured is %d", f.Enum, name, got, is, v)
			}
		}
	}
	unwitnessed(t, "enumerators", all, names)
}

func TestMacrosAgainstFacts(t *testing.T) {
	u := nccl(t)
	want, err := facts.Macros(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	var names, all []string
	for _, m := range u.Macros {
		switch m.Kind {
		case model.MacroInt:
			got[m.Name] = m.Int
			all = append(all, m.Name)
		case model.MacroUint:
			got[m.Name] = int64(m.Uint)
			all = append(all, m.Name)
		}
	}
	for _, m := range want {
		names = append(names, m.Macro)
		if v, is := got[m.Macro]; !is || v != m.Value {
			t.Errorf("%s is %d (there: %t), measured is %d", m.Macro, v, is, m.Value)
		}
	}
	unwitnessed(t, "macros", all, names)
}
