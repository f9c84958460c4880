// Package lock turns a unit into fingerprints, one line for each field,
// enumerator and macro, and says how two sets of them differ. headers/LOCK
// holds those of every version ever released; they must not change.
package lock

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/gen/model"
)

// Line is the fingerprint of one member of one type.
type Line struct {
	Version int    // of the type; 0 for what all versions share
	Struct  string // type; "-" for a macro
	Field   string // path of the member; "-" for the type itself
	Offset  int64  // in the type; the value of an enumerator or a macro
	Size    int64
	Type    string
	Pos     model.Pos // not part of the fingerprint, as all that follows
	Doc     string    // what the header says of it

	typ   *model.Type // what Type spells; nil when read from a file
	shape *Shape      // whose names Struct and Type use, without versions; nil: they are the header's
}

// Whole is the Field of the line that is about a type itself.
const Whole = "-"

func (l Line) String() string {
	v := "-"
	if l.Version > 0 {
		v = "v" + strconv.Itoa(l.Version)
	}
	return fmt.Sprintf("%s %s %s %d %d %s", v, l.Struct, l.Field, l.Offset, l.Size, l.Type)
}

func (l Line) key() string { return l.Struct + " " + l.Field }

// same compares fingerprints.
func (l Line) same(o Line) bool {
	return l.Version == o.Version && l.key() == o.key() && l.Offset == o.Offset && l.Size == o.Size && l.Type == o.Type
}

var suffix = regexp.MustCompile(`_v(\d+)(_t)?$`)

// Version returns the version in a type's name, or 0.
func Version(name string) int {
	m := suffix.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	v, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return v
}

// Of returns the fingerprints of a unit, in source order.
func Of(u *model.Unit) []Line {
	var ls []Line
	for _, m := range u.Macros {
		switch m.Kind {
		case model.MacroInt:
			ls = append(ls, Line{Struct: "-", Field: m.Name, Offset: m.Int, Type: "macro", Pos: m.Pos, Doc: m.Doc})
		case model.MacroUint:
			ls = append(ls, Line{Struct: "-", Field: m.Name, Offset: int64(m.Uint), Type: "macro", Pos: m.Pos, Doc: m.Doc})
		}
	}
	for _, e := range u.Enums {
		name := EnumName(e)
		ls = append(ls, enum(Version(name), name, e)...)
	}
	for _, t := range u.Typedefs {
		ls = append(ls, typedef(t)...)
	}
	return ls
}

// EnumName names an enumeration; one without a name goes by its first value.
func EnumName(e *model.Enum) string {
	switch {
	case e.Name != "":
		return strings.ReplaceAll(e.Name, " ", ":")
	case len(e.Values) > 0:
		return "enum:" + e.Values[0].Name
	}
	return "enum:"
}

func typedef(t *model.Typedef) []Line {
	v := Version(t.Name)
	switch r := t.Type.Record; {
	case r != nil && r.Name == t.Name:
		ls := record(v, t.Name, t.Type)
		ls[0].Pos = t.Pos
		return ls
	case t.Type.Enum != nil && t.Type.Enum.Name == t.Name:
		return nil // listed with the enumerations
	}
	return []Line{{Version: v, Struct: t.Name, Field: Whole, Size: t.Type.Size, Type: "typedef " + t.Type.String(), Pos: t.Pos, Doc: t.Doc, typ: t.Type}}
}

func fields(v int, name, path string, base int64, r *model.Record) []Line {
	var ls []Line
	for _, f := range r.Fields {
		p, inner := path, f.Type.Record
		if f.Name != "" {
			p = strings.TrimPrefix(path+"."+f.Name, ".")
			ls = append(ls, Line{Version: v, Struct: name, Field: p, Offset: base + f.Offset, Size: f.Type.Size, Type: f.Type.String(), Pos: f.Pos, Doc: f.Doc, typ: f.Type})
		}
		if inner != nil && inner.Name == "" {
			ls = append(ls, fields(v, name, p, base+f.Offset, inner)...)
		}
	}
	return ls
}

const head = `# Fingerprints of every type in headers/nccl, written by ` + "`go run ./gen`" + `.
# What a released version says here never changes; see gen/rules/drift.rules.
# version type member offset-or-value size spelling
`

// Format writes the lines of a LOCK file.
func Format(ls []Line) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for _, l := range ls {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Parse reads a LOCK file; name is its name in messages.
func Parse(name string, data []byte) ([]Line, error) {
	var ls []Line
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		s := in.Text()
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		l, err := parseLine(s)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		l.Pos = model.Pos{File: name, Line: n, Col: 1}
		ls = append(ls, l)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return ls, nil
}

func parseLine(s string) (Line, error) {
	w := strings.SplitN(s, " ", 6)
	if len(w) != 6 {
		return Line{}, fmt.Errorf("%q is not a fingerprint: version type member offset size spelling", s)
	}
	l := Line{Struct: w[1], Field: w[2], Type: w[5]}
	var err error
	if w[0] != "-" {
		if l.Version, err = strconv.Atoi(strings.TrimPrefix(w[0], "v")); err != nil {
			return Line{}, fmt.Errorf("version %q: %w", w[0], err)
		}
	}
	if l.Offset, err = strconv.ParseInt(w[3], 10, 64); err != nil {
		return Line{}, fmt.Errorf("offset %q: %w", w[3], err)
	}
	if l.Size, err = strconv.ParseInt(w[4], 10, 64); err != nil {
		return Line{}, fmt.Errorf("size %q: %w", w[4], err)
	}
	return l, nil
}
