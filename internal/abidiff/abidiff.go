// Package abidiff says what the tables of NCCL's plugins are, and in what two
// versions, two releases or two headers differ. It reads headers as the
// generator does, and asks the generator's fingerprints what changed; here is
// only who is compared with whom, and the words.
package abidiff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/gen/lock"
)

// A Report is the answer to one call of weft abi. It is also what --json writes.
type Report interface {
	Text(w io.Writer) error
	Markdown(w io.Writer) error // as tables
	Differs() bool              // in more than names
}

// Diff is in what two sides differ.
type Diff struct {
	Schema  string   `json:"schema"` // weft.abi.diff/1
	Old     string   `json:"old"`    // "net v8", "NCCL 2.19.3", "old/net_v11.h"
	New     string   `json:"new"`
	Differ  bool     `json:"differ"`            // in more than names
	Taken   *Takers  `json:"taken,omitempty"`   // of tables of this build, the releases that take them of weft
	Lookups []Lookup `json:"lookups,omitempty"` // of releases, what they look up
	Vars    *Vars    `json:"variables,omitempty"`
	Does    *Does    `json:"does,omitempty"`  // what releases do to plugins
	Pairs   []Pair   `json:"tables"`          // tables that are compared, and those that one side lacks
	Shared  []Type   `json:"shared"`          // what all versions share: enumerations, limits, types
	Notes   []string `json:"notes,omitempty"` // on how the sides were read
}

// DiffSchema is the version of Diff as JSON.
const DiffSchema = "weft.abi.diff/1"

// Pair is a table of one family in two versions. One that only one side has is
// compared with the newest before it; there New or Old is empty if there is none.
type Pair struct {
	Family string `json:"family"`
	Old    string `json:"old,omitempty"` // its type: "ncclNet_v8_t"
	New    string `json:"new,omitempty"`
	Only   string `json:"only,omitempty"` // "new" or "old": the side that has one of them and not the other
	Types  []Type `json:"types"`
	Said   []Said `json:"said,omitempty"`

	versions [2]int
}

// Type is a type, or a header's limits, with what changed in it.
type Type struct {
	Kind    string   `json:"kind"` // table, struct, union, enum, typedef, limits
	Old     string   `json:"old,omitempty"`
	New     string   `json:"new,omitempty"`
	Bytes   Sizes    `json:"bytes,omitzero"`
	Users   []string `json:"users,omitempty"` // the functions of the table that take it
	Changes []Change `json:"changes"`
}

// Sizes are how large something is, 0 where it is not.
type Sizes struct {
	Old int64 `json:"old"`
	New int64 `json:"new"`
}

// What became of a member.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed" // is something else, and may be elsewhere
	Moved   = "moved"   // the same, elsewhere
	Renamed = "renamed" // the same in other words
)

// Change is what became of one member: of a field, a function, a value.
type Change struct {
	What   string  `json:"what"`
	Member string  `json:"member"` // "-" for the type itself
	Old    *Member `json:"old,omitempty"`
	New    *Member `json:"new,omitempty"`
	Says   string  `json:"says"` // in words
}

// Member is one side of a change.
type Member struct {
	Type   string `json:"type"`             // as the header spells it; "enumerator" or "macro"
	Offset *int64 `json:"offset,omitempty"` // bytes
	Bytes  int64  `json:"bytes,omitempty"`
	Value  *int64 `json:"value,omitempty"`
	Doc    string `json:"doc,omitempty"`    // what the header says of it
	Served string `json:"served,omitempty"` // how weft serves this function
}

// Said is a function of which the newer header says something else.
type Said struct {
	Function string `json:"function"`
	Old      string `json:"old"`
	New      string `json:"new"`
}

// Differs reports whether more than names changed.
func (d *Diff) Differs() bool { return d.Differ }

// conclude finds whether the sides differ, and leaves no list out.
func (d *Diff) conclude() *Diff {
	d.Schema = DiffSchema
	d.Pairs, d.Shared = append([]Pair{}, d.Pairs...), append([]Type{}, d.Shared...)
	d.Differ = d.Vars != nil || d.Does != nil || slices.ContainsFunc(d.Shared, Type.differs)
	for i := range d.Pairs {
		p := &d.Pairs[i]
		p.Types = append([]Type{}, p.Types...)
		d.Differ = d.Differ || p.Only != "" || slices.ContainsFunc(p.Types, Type.differs)
	}
	for _, l := range d.Lookups {
		d.Differ = d.Differ || l.differs()
	}
	return d
}

func (t Type) differs() bool {
	return t.Kind != "limits" && (t.Old == "" || t.New == "" || t.Bytes.Old != t.Bytes.New) ||
		slices.ContainsFunc(t.Changes, func(c Change) bool { return c.What != Renamed })
}

// compareTables compares two tables of one family.
func compareTables(a, b *table) Pair {
	old, new := lock.ShapeOf(a.unit, a.Table), lock.ShapeOf(b.unit, b.Table)
	p := Pair{Family: string(b.Family), Old: a.Record.Name, New: b.Record.Name, versions: [2]int{a.Version, b.Version}}
	whole := Type{Kind: "table", Old: p.Old, New: p.New, Bytes: Sizes{a.Record.Size, b.Record.Size}, Changes: []Change{}}
	for _, t := range types(old.Lines, new.Lines, old, new) {
		if t.Kind == "limits" && a.unit == b.unit && a.Header == b.Header {
			continue // one header has them, for both
		}
		if t.Kind == "limits" {
			for i := range t.Changes { // under its whole name, where there is one
				m := &t.Changes[i].Member
				switch was, is := old.Names[*m], new.Names[*m]; {
				case is == "" || was == is:
					*m = was
				case was == "":
					*m = is
				}
			}
			t.Changes = slices.DeleteFunc(t.Changes, func(c Change) bool {
				return a.unit != b.unit && (foreign(c, a.unit, b.unit, a.ours, b.ours) || elsewhere(&c, a.unit, b.unit))
			})
		}
		switch {
		case t.Old == p.Old && t.New == p.New:
			whole.Changes = t.Changes
			serve(&whole, a, b)
		case t.Kind != "limits" || len(t.Changes) > 0:
			p.Types = append(p.Types, t)
		}
	}
	p.Types = append([]Type{whole}, p.Types...)
	if a.ours != b.ours {
		return p // whose comments are in other words throughout
	}
	for _, f := range lock.Reworded(a.Record, b.Record) {
		was, _ := a.Record.Field(f.Name)
		p.Said = append(p.Said, Said{f.Name, was.Doc, f.Doc})
	}
	return p
}

// serve says how weft serves the functions that changed.
func serve(t *Type, a, b *table) {
	for i := range t.Changes {
		c := &t.Changes[i]
		if c.What == Moved {
			continue
		}
		if c.Old != nil {
			c.Old.Served = howServed(a.Family, a.Version, c.Member)
		}
		if c.New != nil {
			c.New.Served = howServed(b.Family, b.Version, c.Member)
		}
	}
}

// types compares two sets of fingerprints, and sorts what changed by the type
// that it is of. Without shapes the names are as they are.
func types(old, new []lock.Line, a, b *lock.Shape) []Type {
	was, is := wholes(old), wholes(new)
	at := map[string]int{}
	var list []Type
	for _, c := range lock.Diff(old, new) {
		name := c.Line().Struct
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, typeOf(name, was[name], is[name], a, b))
		}
		x := change(c)
		if x.Member == lock.Whole {
			x.Says = wholeWords(c)
		}
		if x.Says != "" {
			list[i].Changes = append(list[i].Changes, x)
		}
	}
	return list
}

// wholes are the lines about types themselves, by their names.
func wholes(ls []lock.Line) map[string]*lock.Line {
	m := map[string]*lock.Line{}
	for i := range ls {
		if ls[i].Field == lock.Whole {
			m[ls[i].Struct] = &ls[i]
		}
	}
	return m
}

// typeOf is a type without its changes; was or is is nil where it is not.
func typeOf(name string, was, is *lock.Line, a, b *lock.Shape) Type {
	t := Type{Kind: "limits", Changes: []Change{}}
	for _, side := range []struct {
		line  *lock.Line
		shape *lock.Shape
		name  *string
		bytes *int64
	}{{was, a, &t.Old, &t.Bytes.Old}, {is, b, &t.New, &t.Bytes.New}} {
		if side.line == nil {
			continue
		}
		*side.name, *side.bytes = name, side.line.Size
		t.Kind, _, _ = strings.Cut(side.line.Type, " ")
		if side.shape != nil {
			*side.name, t.Users = side.shape.Names[name], side.shape.Users[name]
		}
	}
	return t
}

func member(l *lock.Line) *Member {
	if l == nil {
		return nil
	}
	m := &Member{Type: l.Spelling(), Doc: l.Doc}
	at := l.Offset
	switch {
	case l.Type == "enumerator" || l.Type == "macro":
		m.Value = &at
	case l.Field == lock.Whole:
		m.Bytes = l.Size
	default:
		m.Offset, m.Bytes = &at, l.Size
	}
	return m
}

func change(c *lock.Change) Change {
	x := Change{Member: c.Line().Field, Old: member(c.Old), New: member(c.New), Says: words(c)}
	switch {
	case c.Kind == lock.Added:
		x.What = Added
	case c.Kind == lock.Removed:
		x.What = Removed
	case c.Kind == lock.Respelled:
		x.What = Renamed
	case c.Moved() && !c.Retyped():
		x.What = Moved
	default:
		x.What = Changed
	}
	return x
}

// plural is "1 byte", "2 bytes".
func plural[N int | int64](n N, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
