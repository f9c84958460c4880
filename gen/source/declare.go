package source

import (
	"fmt"
	"strings"

	"weft/gen/model"
)

// width is the longest line that a restated header has.
const width = 100

// A Commenter finds what our headers say about a member of this name.
type Commenter func(*model.Field) string

func silent(*model.Field) string { return "" }

// Declare writes a typedef in the layout of our headers, with the comments
// that doc finds for its members.
func Declare(b *strings.Builder, t *model.Typedef, doc Commenter) {
	switch r, e := t.Type.Record, t.Type.Enum; {
	case r != nil && r.Name == t.Name:
		fmt.Fprintf(b, "typedef %s {\n", strings.TrimSpace(keyword(r)+" "+r.Tag))
		members(b, r, 1, doc)
		fmt.Fprintf(b, "} %s;\n", t.Name)
	case e != nil && e.Name == t.Name:
		fmt.Fprintf(b, "typedef %s {\n", strings.TrimSpace("enum "+e.Tag))
		for i, v := range e.Values {
			comma := ","
			if i == len(e.Values)-1 {
				comma = ""
			}
			fmt.Fprintf(b, "  %s = %d%s\n", v.Name, v.Value, comma)
		}
		fmt.Fprintf(b, "} %s;\n", t.Name)
	case t.Type.IsFuncPtr() && t.Type.Name == "":
		wrap(b, "typedef "+opening(t.Type.Elem.Func, t.Name), t.Type.Elem.Func)
	default:
		fmt.Fprintf(b, "typedef %s;\n", t.Type.Declare(t.Name))
	}
}

func keyword(r *model.Record) string {
	if r.Union {
		return "union"
	}
	return "struct"
}

func members(b *strings.Builder, r *model.Record, depth int, doc Commenter) {
	pad := strings.Repeat("  ", depth)
	column := 0 // where comments behind data members begin
	for _, f := range r.Fields {
		if plain(f) && doc(f) != "" {
			column = max(column, len(f.Type.Declare(f.Name))+1)
		}
	}
	for _, f := range r.Fields {
		said := doc(f)
		switch {
		case f.Type.IsFuncPtr() && f.Type.Name == "":
			if said != "" {
				fmt.Fprintf(b, "%s/* %s */\n", pad, said)
			}
			wrap(b, pad+opening(f.Type.Elem.Func, f.Name), f.Type.Elem.Func)
		case f.Type.Record != nil && f.Type.Record.Name == "":
			fmt.Fprintf(b, "%s%s {", pad, keyword(f.Type.Record))
			if said != "" {
				fmt.Fprintf(b, " /* %s */", said)
			}
			b.WriteByte('\n')
			members(b, f.Type.Record, depth+1, silent)
			fmt.Fprintf(b, "%s;\n", strings.TrimRight(pad+"} "+f.Name, " "))
		case said != "":
			fmt.Fprintf(b, "%s%-*s  /* %s */\n", pad, column, f.Type.Declare(f.Name)+";", said)
		default:
			fmt.Fprintf(b, "%s%s;\n", pad, f.Type.Declare(f.Name))
		}
	}
}

func plain(f *model.Field) bool {
	return !(f.Type.IsFuncPtr() && f.Type.Name == "") && !(f.Type.Record != nil && f.Type.Record.Name == "")
}

func opening(f *model.Func, name string) string {
	return fmt.Sprintf("%s (*%s)(", f.Result, name)
}

// wrap writes parameters behind an opening, aligned under the first.
func wrap(b *strings.Builder, line string, f *model.Func) {
	indent := strings.Repeat(" ", len(line))
	var ps []string
	for _, p := range f.Params {
		ps = append(ps, p.Type.Declare(p.Name))
	}
	if f.Variadic {
		ps = append(ps, "...")
	}
	if len(ps) == 0 {
		ps = []string{"void"}
	}
	for i, p := range ps {
		end := ", "
		if i == len(ps)-1 {
			end = ");"
		}
		if len(line)+len(strings.TrimRight(p+end, " ")) > width && line != indent {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += p + end
	}
	b.WriteString(line + "\n")
}

// needs lists the typedefs of u that a typedef refers to, by name.
func needs(u *model.Unit, t *model.Typedef) []string {
	return Refers(t, func(name string) bool { return u.Typedef(name) != nil })
}

// Refers lists the types of those that count that a typedef refers to.
func Refers(t *model.Typedef, counts func(name string) bool) []string {
	var names []string
	seen := map[string]bool{t.Name: true}
	t.Type.Walk(func(x *model.Type) bool {
		if x.Name == "" || x.Name == t.Name || !counts(x.Name) {
			return true
		}
		if !seen[x.Name] {
			seen[x.Name] = true
			names = append(names, x.Name)
		}
		return false
	})
	return names
}

// Closure lists the typedefs that the named ones need, themselves included,
// in the order of u.
func Closure(u *model.Unit, names ...string) []*model.Typedef {
	in := map[string]bool{}
	var add func(string)
	add = func(name string) {
		if t := u.Typedef(name); t != nil && !in[name] {
			in[name] = true
			for _, n := range needs(u, t) {
				add(n)
			}
		}
	}
	for _, n := range names {
		add(n)
	}
	var ts []*model.Typedef
	for _, t := range u.Typedefs {
		if in[t.Name] {
			ts = append(ts, t)
		}
	}
	return ts
}
