package abidiff

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"weft/gen/model"
)

func (s Span) String() string {
	switch {
	case s.First == "":
		return "none"
	case s.First == s.Last:
		return s.First
	}
	return s.First + " to " + s.Last
}

func vs(versions []int) string {
	var all []string
	for _, v := range versions {
		all = append(all, fmt.Sprintf("v%d", v))
	}
	return strings.Join(all, " ")
}

// Text writes the tables, and the releases by what they look up.
func (l *List) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-22s %9s %6s  %-18s %s\n", "table", "functions", "bytes", "looked up by NCCL", "taken of weft by")
	for _, t := range l.Tables {
		fmt.Fprintf(&b, "%-22s %9d %6d  %-18s %s\n", t.Symbol, t.Functions, t.Bytes, t.Asked, t.Taken)
	}
	fmt.Fprintf(&b, "\nNCCL takes the first that it finds of\n")
	for _, r := range l.Releases {
		var all []string
		for _, f := range model.Families {
			if v := r.Finds[string(f)]; len(v) > 0 {
				all = append(all, fmt.Sprintf("%s %s", f, vs(v)))
			}
		}
		if len(all) > 0 {
			fmt.Fprintf(&b, "%-18s %s\n", r.Span, strings.Join(all, "; "))
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// Text writes what a release looks up.
func (l *Looks) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "NCCL %s, of %s, looks up in a plugin's library, in this order\n", l.Release, l.Date)
	for _, f := range l.Lookups {
		switch {
		case len(f.Versions) == 0:
			fmt.Fprintf(&b, "  %-9s nothing\n", f.Family)
		case f.Takes == "":
			fmt.Fprintf(&b, "  %-9s %s; it takes none of weft\n", f.Family, strings.Join(f.Symbols, ", "))
		default:
			fmt.Fprintf(&b, "  %-9s %s; it takes of weft %s\n", f.Family, strings.Join(f.Symbols, ", "), f.Takes)
		}
	}
	if len(l.Vars) > 0 {
		fmt.Fprintf(&b, "variables that name plugins: %s\n", strings.Join(l.Vars, ", "))
	}
	b.WriteString("limits\n")
	for _, name := range sortedKeys(l.Limits) {
		fmt.Fprintf(&b, "  %s = %d\n", name, l.Limits[name])
	}
	_, err := b.WriteTo(w)
	return err
}

// Text writes the table as a header would, with offsets.
func (s *Spelled) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: looked up by NCCL %s; taken of weft by %s\n", s.Symbol, s.Asked, s.Taken)
	for _, t := range s.Types {
		switch {
		case t.Kind == "limits":
			b.WriteString("\nlimits\n")
		case len(t.Users) > 0 && t.Kind != "table":
			fmt.Fprintf(&b, "\n%s %s: %s; of %s\n", t.Kind, t.Name, plural(t.Bytes, "byte"), strings.Join(t.Users, ", "))
		default:
			fmt.Fprintf(&b, "\n%s %s: %s\n", t.Kind, t.Name, plural(t.Bytes, "byte"))
		}
		for _, m := range t.Members {
			m.text(&b)
		}
	}
	_, err := b.WriteTo(w)
	return err
}

func (m *Named) text(b *bytes.Buffer) {
	doc := ""
	if m.Doc != "" {
		doc = "  /* " + m.Doc + " */"
	}
	if m.Value != nil {
		wrap(b, "  ", fmt.Sprintf("%s = %d%s", m.Name, *m.Value, doc))
		return
	}
	head := fmt.Sprintf("  %4d %3d  ", *m.Offset, m.Bytes)
	if params, _, ok := strings.Cut(m.says, " at "); ok && strings.Contains(m.Type, "(*)") {
		wrap(b, head, m.Name+params+doc)
	} else {
		wrap(b, head, m.Name+": "+m.Type+doc)
	}
	if m.Served != "" && m.Served != "direct" {
		wrap(b, strings.Repeat(" ", len(head)), "weft: "+m.Served)
	}
}
