package lock

import (
	"fmt"
	"regexp"
	"strings"

	"weft/gen/model"
)

// Shape is the fingerprints of a table, of the versioned types that it is made
// of and of the limits beside it, under names without versions: those of two
// versions can be compared.
type Shape struct {
	Lines []Line
	// Names are what the names in Lines stand for: "ncclNet" for "ncclNet_v8_t".
	Names map[string]string
	// Users are the functions of the table by whom they take a type, by its name in Lines.
	Users map[string][]string

	stems map[string]string // the other way round
}

// ShapeOf returns the shape of a table of u, itself first.
func ShapeOf(u *model.Unit, t *model.Table) *Shape {
	s := &Shape{Names: map[string]string{}, Users: map[string][]string{}, stems: map[string]string{}}
	whole := &model.Type{Kind: model.Struct, Name: t.Record.Name, Size: t.Record.Size, Align: t.Record.Align, Record: t.Record}
	types := versioned(whole)
	newest := map[string]*model.Type{}
	for _, x := range types { // of two versions of one type the newest has the name
		if was := newest[Stem(x.Name)]; was == nil || Version(x.Name) > Version(was.Name) {
			newest[Stem(x.Name)] = x
		}
	}
	told := map[string]bool{}
	for _, x := range types {
		stem := Stem(x.Name)
		switch top := newest[stem]; {
		case top.Name != x.Name && top.Record != nil && top.Record == x.Record: // an alias of it
			s.stems[x.Name] = stem
		case top.Name != x.Name:
			s.name(x.Name, x.Name)
		default:
			s.name(stem, x.Name)
		}
	}
	for _, x := range types {
		if x.Enum != nil && x.Enum.Name != x.Name {
			continue // another name for one that all versions share
		}
		if stem := s.stems[x.Name]; !told[stem] {
			told[stem] = true
			s.add(stem, x)
		}
	}
	for _, f := range t.Record.Fields {
		for _, x := range versioned(f.Type) {
			s.Users[s.stems[x.Name]] = append(s.Users[s.stems[x.Name]], f.Name)
		}
	}
	for _, l := range Of(&model.Unit{Macros: u.Macros}) {
		if l.Pos.File != t.Header {
			continue
		}
		name, mine := strings.CutSuffix(l.Field, fmt.Sprintf("_V%d", t.Version))
		if mine && u.Macro(name) != nil { // a header of several versions
			name = l.Field
		}
		s.name(name, l.Field)
		l.Field, l.shape = name, s
		s.Lines = append(s.Lines, l)
	}
	return s
}

var word = regexp.MustCompile(`\w+`)

func (s *Shape) name(here, stands string) {
	s.Names[here], s.stems[stands] = stands, here
}

// add adds the lines of a type under the name that it has here.
func (s *Shape) add(name string, t *model.Type) {
	var ls []Line
	switch t.Kind {
	case model.Struct, model.Union:
		ls = record(0, name, t)
	case model.Enumeration:
		ls = enum(0, name, t.Enum)
	default:
		bare := *t
		bare.Name = ""
		ls = []Line{{Struct: name, Field: Whole, Size: t.Size, Type: "typedef " + s.spell(&bare), typ: &bare}}
	}
	for i := range ls {
		if ls[i].shape = s; ls[i].Field != Whole && ls[i].typ != nil {
			ls[i].Type = s.spell(ls[i].typ)
		}
	}
	s.Lines = append(s.Lines, ls...)
}

// spell spells a type by the names that are used here.
func (s *Shape) spell(t *model.Type) string {
	if s == nil {
		return t.String()
	}
	return word.ReplaceAllStringFunc(t.String(), func(w string) string {
		if here, ok := s.stems[w]; ok {
			return here
		}
		return w
	})
}

// versioned lists the types with a version in their name that t is made of, in
// the order of their first use.
func versioned(t *model.Type) (list []*model.Type) {
	seen := map[string]bool{}
	t.Walk(func(x *model.Type) bool {
		if Version(x.Name) > 0 && !seen[x.Name] {
			seen[x.Name] = true
			list = append(list, x)
		}
		return true
	})
	return list
}

// record returns the lines of a struct or union of that name.
func record(v int, name string, t *model.Type) []Line {
	kind := "struct"
	if t.Record.Union {
		kind = "union"
	}
	r := t.Record
	ls := []Line{{Version: v, Struct: name, Field: Whole, Size: r.Size, Type: fmt.Sprintf("%s align %d", kind, r.Align), Pos: r.Pos, Doc: r.Doc, typ: t}}
	return append(ls, fields(v, name, "", 0, r)...)
}

// OfEnum returns the fingerprints of one enumeration under a name, as one of all versions.
func OfEnum(name string, e *model.Enum) []Line { return enum(0, name, e) }

func enum(v int, name string, e *model.Enum) []Line {
	ls := []Line{{Version: v, Struct: name, Field: Whole, Size: e.Size, Type: "enum", Pos: e.Pos, Doc: e.Doc}}
	for _, x := range e.Values {
		ls = append(ls, Line{Version: v, Struct: name, Field: x.Name, Offset: x.Value, Size: e.Size, Type: "enumerator", Pos: x.Pos, Doc: x.Doc})
	}
	return ls
}

// Spelling is a member's type as its header spells it, with the versions.
func (l *Line) Spelling() string {
	if l.typ != nil && l.Field != Whole {
		return l.typ.String()
	}
	return strings.TrimPrefix(l.Type, "typedef ")
}

// Func is the function that the member points to, or nil.
func (l *Line) Func() *model.Func {
	if l.typ == nil || !l.typ.IsFuncPtr() {
		return nil
	}
	return l.typ.Elem.Func
}
