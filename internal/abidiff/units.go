package abidiff

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"weft/gen/lock"
	"weft/gen/model"
	"weft/gen/source"
)

// unit is a set of headers that is compared as a whole.
type unit struct {
	*model.Unit
	name  string
	ours  bool     // the headers of this build, of which others have a part
	took  []string // what it uses and does not define
	notes []string
}

func (u *unit) table(t *model.Table) *table { return &table{t, u.Unit, u.ours} }

// open reads a header, or a folder of them, that the user names. What it takes
// for granted comes from the headers of this build.
func open(path string) (*unit, error) {
	ours, err := known()
	if err != nil {
		return nil, err
	}
	s, err := source.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file or folder %s: name a header, or a folder of them", path)
	case err != nil:
		return nil, fmt.Errorf("read the headers of %s: %w", path, err)
	}
	u, err := s.Parse(ours)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(u.Tables)+len(u.Enums)+len(u.Typedefs) == 0 {
		return nil, fmt.Errorf("%s declares nothing that could be compared: is it the header that you mean?", path)
	}
	x := &unit{Unit: u, name: path, took: s.Took()}
	for _, n := range s.Notes() {
		x.notes = append(x.notes, path+": "+n)
	}
	return x, nil
}

// compareUnits compares all that two sets of headers declare.
func compareUnits(old, new *unit) *Diff {
	d := &Diff{Old: old.name, New: new.name, Notes: append(slices.Clone(old.notes), new.notes...)}
	for _, f := range model.Families {
		d.Pairs = append(d.Pairs, pairs(old, new, f)...)
	}
	d.Shared = shared(old, new)
	slices.Sort(d.Notes)
	d.Notes = slices.Compact(d.Notes)
	d.tidy()
	return d.conclude()
}

// tidy leaves out the limits of a header that were told with another of its
// tables, and versions in which nothing is to be told.
func (d *Diff) tidy() {
	told := map[string]bool{}
	for i := range d.Pairs {
		p := &d.Pairs[i]
		p.Types = slices.DeleteFunc(p.Types, func(t Type) bool {
			if t.Kind != "limits" {
				return false
			}
			key := fmt.Sprint(p.versions)
			for _, c := range t.Changes {
				key += " " + c.Member + " " + c.Says
			}
			again := told[key]
			told[key] = true
			return again
		})
	}
	d.Pairs = slices.DeleteFunc(d.Pairs, func(p Pair) bool {
		changed := slices.ContainsFunc(p.Types, func(t Type) bool { return len(t.Changes) > 0 })
		return p.Old == p.New && p.Only == "" && !changed && len(p.Said) == 0
	})
}

// pairs compares the tables of a family: the same versions, and a new one with
// the newest before it. Where each side has one, these two are meant.
func pairs(old, new *unit, f model.Family) (list []Pair) {
	before, after := versions(old.Unit, f), versions(new.Unit, f)
	if len(before) == 1 && len(after) == 1 {
		return []Pair{compareTables(old.table(old.Table(f, before[0])), new.table(new.Table(f, after[0])))}
	}
	for _, v := range after {
		t := new.table(new.Table(f, v))
		switch was, ok := predecessor(old, new, f, v); {
		case slices.Contains(before, v):
			list = append(list, compareTables(old.table(old.Table(f, v)), t))
		case ok:
			p := compareTables(was, t)
			p.Only = "new"
			list = append(list, p)
		default:
			list = append(list, Pair{Family: string(f), New: t.Record.Name, Only: "new", versions: [2]int{0, v}})
		}
	}
	for _, v := range before {
		if !old.ours && !slices.Contains(after, v) {
			list = append(list, Pair{Family: string(f), Old: f.TypeName(v), Only: "old", versions: [2]int{v, 0}})
		}
	}
	return list
}

// predecessor is the newest table before a version, that of the old side first.
func predecessor(old, new *unit, f model.Family, version int) (*table, bool) {
	var best *table
	for _, u := range []*unit{old, new} {
		for _, t := range u.Tables {
			if t.Family == f && t.Version < version && (best == nil || t.Version > best.Version) {
				best = u.table(t)
			}
		}
	}
	return best, best != nil
}

// shared compares what all versions share: enumerations, limits, types.
func shared(old, new *unit) (list []Type) {
	for _, t := range types(common(old.Unit), common(new.Unit), nil, nil) {
		if t.Kind == "limits" {
			t.Changes = slices.DeleteFunc(t.Changes, func(c Change) bool {
				return foreign(c, old.Unit, new.Unit, old.ours, new.ours) || elsewhere(&c, old.Unit, new.Unit)
			})
		}
		switch {
		case t.Kind == "limits" && len(t.Changes) == 0:
		case t.Old == "" && slices.Contains(old.took, t.New), t.New == "" && slices.Contains(new.took, t.Old):
		case t.Kind != "limits" && old.ours && (t.New == "" || t.Old == "" && t.Kind == "typedef"):
		default:
			list = append(list, t)
		}
	}
	return list
}

// foreign reports whether a change of limits is none of this build's, where it is
// one of the sides: it has limits of plugins, and others may have a part of them.
func foreign(c Change, old, new *model.Unit, oursOld, oursNew bool) bool {
	switch {
	case oursOld == oursNew || c.What == Changed:
		return false
	case oursOld:
		return c.What == Removed || !isLimit(new, c.Member)
	}
	return c.What == Added || !isLimit(old, c.Member)
}

func isLimit(u *model.Unit, name string) bool {
	m := u.Macro(name)
	return m != nil && m.IsLimit()
}

// elsewhere reports whether a limit that is new or gone in one header is in
// another one of the other side.
func elsewhere(c *Change, old, new *model.Unit) bool {
	u, value := old, c.New
	switch c.What {
	case Removed:
		u, value = new, c.Old
	case Added:
	default:
		return false
	}
	m := u.Macro(c.Member)
	return m != nil && (m.Int == *value.Value || int64(m.Uint) == *value.Value)
}

// common are the fingerprints of what all versions share.
func common(u *model.Unit) []lock.Line {
	tables := map[string]bool{}
	for _, t := range u.Tables {
		tables[t.Header] = true
	}
	return slices.DeleteFunc(lock.Of(u), func(l lock.Line) bool {
		return l.Version > 0 || l.Struct == "-" && (tables[l.Pos.File] || strings.HasSuffix(l.Field, "_H"))
	})
}
