package abidiff

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"weft/gen/lock"
	"weft/gen/model"
	"weft/internal/release"
)

// Lookup is what a release looks up of one family in a plugin's library, in this
// order, and which of weft's tables it takes.
type Lookup struct {
	Family string `json:"family"`
	Old    Finds  `json:"old"`
	New    Finds  `json:"new"`
}

// Finds are the symbols that one release looks up, and the one that it finds in weft.
type Finds struct {
	Symbols  []string `json:"symbols"`
	Versions []int    `json:"versions"`
	Takes    string   `json:"takes,omitempty"` // none: it takes none of weft's

	table int
}

// Vars are the variables that name plugins.
type Vars struct {
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// Does is what a release does to plugins that the other does not.
type Does struct {
	Begins []string `json:"begins"`
	Ends   []string `json:"ends"`
}

// does compares what two releases do; nil: the same.
func does(old, new *release.Release) *Does {
	d := &Does{Begins: []string{}, Ends: []string{}}
	for _, b := range release.Behaviours {
		switch was, is := b.Does(old), b.Does(new); {
		case is && !was:
			d.Begins = append(d.Begins, b.Says)
		case was && !is:
			d.Ends = append(d.Ends, b.Says)
		}
	}
	if len(d.Begins)+len(d.Ends) == 0 {
		return nil
	}
	return d
}

func (l *Lookup) differs() bool { return !slices.Equal(l.Old.Versions, l.New.Versions) }

// lookedUp are the versions of a family that a release looks up, in its order.
func lookedUp(r *release.Release, f model.Family) []int {
	switch f {
	case model.Net:
		return r.Net
	case model.CollNet:
		return r.CollNet
	case model.Profiler:
		return r.Profiler
	case model.Tuner:
		return r.Tuner
	}
	return nil
}

func finds(r *release.Release, f model.Family) Finds {
	x := Finds{Symbols: []string{}, Versions: []int{}}
	for _, v := range lookedUp(r, f) {
		x.Symbols = append(x.Symbols, f.Symbol(v))
		x.Versions = append(x.Versions, v)
		if x.Takes == "" && exports(f, v) {
			x.Takes, x.table = f.Symbol(v), v
		}
	}
	return x
}

// compareReleases compares what two releases look up, the tables that they take
// of weft, and the limits and values that they know.
func compareReleases(old, new *release.Release) (*Diff, error) {
	u, err := known()
	if err != nil {
		return nil, err
	}
	d := &Diff{Old: old.String(), New: new.String(), Does: does(old, new)}
	for _, f := range model.Families {
		l := Lookup{string(f), finds(old, f), finds(new, f)}
		d.Lookups = append(d.Lookups, l)
		a, b := u.Table(f, l.Old.table), u.Table(f, l.New.table)
		if a != nil && b != nil && a != b {
			d.Pairs = append(d.Pairs, compareTables(&table{a, u, true}, &table{b, u, true}))
		}
	}
	if v := (Vars{missing(new.Env, old.Env), missing(old.Env, new.Env)}); len(v.Added)+len(v.Removed) > 0 {
		d.Vars = &v
	}
	d.Shared = append(d.Shared, limits(old.Limits, new.Limits)...)
	for _, e := range []struct {
		name  string
		knows func(r *release.Release, value int64) bool
	}{
		{"ncclResult_t", func(r *release.Release, v int64) bool { return v <= int64(r.LastResult) }},
		{"ncclDataType_t", func(r *release.Release, v int64) bool { return v < int64(r.DataTypes) }},
		{"ncclRedOp_t", func(r *release.Release, v int64) bool { return v < int64(r.RedOps) }},
		{"ncclDebugLogSubSys", func(r *release.Release, v int64) bool {
			return bits.OnesCount64(uint64(v)) == 1 && r.Subsystems&uint64(v) != 0
		}},
	} {
		d.Shared = append(d.Shared, values(u, e.name, func(v int64) bool { return e.knows(old, v) }, func(v int64) bool { return e.knows(new, v) })...)
	}
	d.tidy()
	return d.conclude(), nil
}

// missing are those of want that have does not hold.
func missing(want, have []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(v string) bool { return slices.Contains(have, v) })
}

// limits compares the limits of two releases.
func limits(old, new map[string]int64) []Type {
	t := Type{Kind: "limits"}
	all := maps.Clone(old)
	maps.Copy(all, new)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := old[name]
		is, has := new[name]
		t.value(name, "macro", was, had, is, has, "")
	}
	if len(t.Changes) == 0 {
		return nil
	}
	return []Type{t}
}

// values compares which values of an enumeration two releases know.
func values(u *model.Unit, name string, old, new func(value int64) bool) []Type {
	e := u.Enum(name)
	if e == nil {
		return nil
	}
	t := Type{Kind: "enum", Old: name, New: name, Bytes: Sizes{e.Size, e.Size}}
	for _, v := range e.Values {
		if lock.Counter(v.Name) {
			continue
		}
		t.value(v.Name, "enumerator", v.Value, old(v.Value), v.Value, new(v.Value), v.Doc)
	}
	if len(t.Changes) == 0 {
		return nil
	}
	return []Type{t}
}

// value adds what became of a value, if anything.
func (t *Type) value(name, kind string, was int64, had bool, is int64, has bool, doc string) {
	c := Change{Member: name}
	if had {
		c.Old = &Member{Type: kind, Value: &was, Doc: doc}
	}
	if has {
		c.New = &Member{Type: kind, Value: &is, Doc: doc}
	}
	switch {
	case had && has && was != is:
		c.What, c.Says = Changed, fmt.Sprintf("%d, was %d", is, was)
	case has && !had:
		c.What, c.Says = Added, fmt.Sprint(is)
	case had && !has:
		c.What, c.Says = Removed, fmt.Sprint(was)
	default:
		return
	}
	t.Changes = append(t.Changes, c)
}
