package abidiff

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// width is the column at which long lines end.
const width = 110

// Text writes the difference in words.
func (d *Diff) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s -> %s\n", d.Old, d.New)
	if d.Taken != nil {
		fmt.Fprintf(&b, "taken of weft by NCCL %s -> %s\n", d.Taken.Old, d.Taken.New)
	}
	for i := range d.Lookups {
		if i == 0 {
			b.WriteString("\nlooked up in a plugin's library, in this order\n")
		}
		d.Lookups[i].text(&b)
	}
	if v := d.Vars; v != nil {
		fmt.Fprintf(&b, "\nvariables that name plugins\n")
		row(&b, "added", strings.Join(v.Added, ", "))
		row(&b, "removed", strings.Join(v.Removed, ", "))
	}
	if d.Does != nil {
		fmt.Fprintf(&b, "\nwhat NCCL does with plugins\n")
		for _, s := range d.Does.Begins {
			row(&b, "begins", s)
		}
		for _, s := range d.Does.Ends {
			row(&b, "ends", s)
		}
	}
	told := map[string]bool{}
	for i := range d.Pairs {
		d.Pairs[i].text(&b, told)
	}
	for i := range d.Shared {
		d.Shared[i].text(&b, 0, 0)
	}
	if !d.Differ {
		b.WriteString("\nno difference" + map[bool]string{true: " but in words", false: ""}[d.worded()] + "\n")
	}
	for i, n := range d.Notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		wrap(&b, "note: ", n)
	}
	_, err := b.WriteTo(w)
	return err
}

// worded reports whether anything is told of the tables.
func (d *Diff) worded() bool {
	for _, p := range d.Pairs {
		if len(p.Said) > 0 || slices.ContainsFunc(p.Types, func(t Type) bool { return len(t.Changes) > 0 }) {
			return true
		}
	}
	return len(d.Shared) > 0
}

func (l *Lookup) text(b *bytes.Buffer) {
	side := func(f *Finds) string {
		if len(f.Versions) == 0 {
			return "none"
		}
		return vs(f.Versions)
	}
	takes := func(f *Finds) string {
		if f.Takes == "" {
			return "none"
		}
		return f.Takes
	}
	was, is := side(&l.Old), side(&l.New)
	line := was
	if was != is {
		line += " -> " + is
	}
	if a, z := takes(&l.Old), takes(&l.New); was != "none" || is != "none" {
		line += "; it takes of weft "
		if a != z {
			line += a + " -> "
		}
		line += z
	}
	fmt.Fprintf(b, "  %-9s %s\n", l.Family, line)
}

// text leaves out what was told with another table: those of one header share types.
func (p *Pair) text(b *bytes.Buffer, told map[string]bool) {
	switch {
	case p.Only == "old":
		fmt.Fprintf(b, "\n%s is gone\n", p.Old)
	case p.Only == "new" && p.Old == "":
		fmt.Fprintf(b, "\n%s is new\n", p.New)
	case p.Only == "new":
		fmt.Fprintf(b, "\n%s is new; against %s:\n", p.New, p.Old)
	}
	for i := range p.Types {
		t := &p.Types[i]
		if t.Kind == "limits" {
			fmt.Fprintf(b, "\nlimits in the header of %s\n", p.New)
			t.rows(b, p.versions[0], p.versions[1])
			continue
		}
		if key := t.Kind + t.Old + t.New + fmt.Sprint(p.versions); !told[key] {
			told[key] = true
			t.text(b, p.versions[0], p.versions[1])
		} else {
			fmt.Fprintf(b, "\n%s: as above\n", t.title())
		}
	}
	for i, s := range p.Said {
		if i == 0 {
			fmt.Fprintf(b, "\nwhat the headers say of functions of %s\n", p.New)
		}
		row(b, "now", s.Function+": "+s.New)
		row(b, "before", s.Old)
	}
}

// title names a type and its size, of both sides.
func (t *Type) title() string {
	of := func(what string) string {
		if len(t.Users) > 0 && t.Kind != "table" {
			what += "; of " + strings.Join(t.Users, ", ")
		}
		return what
	}
	switch {
	case t.Kind == "limits":
		return "limits"
	case t.Old == "":
		return of(fmt.Sprintf("%s %s, new: %s", t.Kind, strings.Replace(t.New, "enum:", "with ", 1), plural(t.Bytes.New, "byte")))
	case t.New == "":
		return of(fmt.Sprintf("%s %s, gone: %s", t.Kind, strings.Replace(t.Old, "enum:", "with ", 1), plural(t.Bytes.Old, "byte")))
	}
	name := strings.Replace(t.Old, "enum:", "with ", 1)
	if t.New != t.Old {
		name += " -> " + t.New
	}
	size := plural(t.Bytes.New, "byte")
	if t.Bytes.Old != t.Bytes.New {
		size = fmt.Sprintf("%d -> %s", t.Bytes.Old, size)
	}
	if t.Kind == "table" && len(t.Changes) == 0 {
		size += ", the same functions"
	}
	return of(fmt.Sprintf("%s %s: %s", t.Kind, name, size))
}

// text tells of a type; the versions are those of its table, 0 for none.
func (t *Type) text(b *bytes.Buffer, old, new int) {
	fmt.Fprintf(b, "\n%s\n", t.title())
	t.rows(b, old, new)
}

func (t *Type) rows(b *bytes.Buffer, old, new int) {
	for i := 0; i < len(t.Changes); i++ {
		c := &t.Changes[i]
		what := c.What
		switch {
		case what == Moved:
			n := together(t.Changes[i:])
			row(b, Moved, moves(t.Changes[i:i+n]))
			i += n - 1
			continue
		case t.Kind != "limits" && (t.Old == "" || t.New == ""): // its title says it
			what = ""
		}
		c.text(b, what, old, new)
	}
}

func (c *Change) text(b *bytes.Buffer, what string, old, new int) {
	sep := ": "
	switch {
	case c.Member == "-": // the type itself
		row(b, what, c.Says)
		return
	case c.New != nil && strings.HasPrefix(c.Says, "("):
		sep = ""
	case c.New == nil && strings.HasPrefix(c.Says, "("):
		sep = ""
	case c.value():
		sep = " = "
	}
	says := c.Member + sep + c.Says
	if c.What == Added && c.New.Doc != "" {
		says += "  /* " + c.New.Doc + " */"
	}
	row(b, what, says)
	was, is := "", ""
	if c.Old != nil {
		was = c.Old.Served
	}
	if c.New != nil {
		is = c.New.Served
	}
	switch {
	case was == is && (is == "direct" || is == ""):
	case was == is:
		row(b, "", "weft: "+is)
	default:
		for _, s := range []struct {
			version int
			how     string
		}{{old, was}, {new, is}} {
			if s.how != "" {
				row(b, "", fmt.Sprintf("weft's v%d: %s", s.version, s.how))
			}
		}
	}
}

func (c *Change) value() bool {
	return c.Old != nil && c.Old.Value != nil || c.New != nil && c.New.Value != nil
}

// by is how far a member moved.
func (c *Change) by() int64 { return *c.New.Offset - *c.Old.Offset }

// together counts the first members that moved by the same.
func together(cs []Change) (n int) {
	for n < len(cs) && cs[n].What == Moved && cs[n].by() == cs[0].by() {
		n++
	}
	return n
}

func moves(cs []Change) string {
	var all []string
	for _, c := range cs {
		all = append(all, fmt.Sprintf("%s (%d)", c.Member, *c.New.Offset))
	}
	return fmt.Sprintf("by %s, to: %s", plural(cs[0].by(), "byte"), strings.Join(all, ", "))
}

// row writes what happened and to what, without an empty one.
func row(b *bytes.Buffer, what, text string) {
	if text != "" {
		wrap(b, fmt.Sprintf("  %-8s ", what), text)
	}
}

// wrap writes a text behind a head, its further lines below the first.
func wrap(b *bytes.Buffer, head, text string) {
	line := head
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > width && strings.TrimSpace(line) != "" {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", len(head)+2)
			line += word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
