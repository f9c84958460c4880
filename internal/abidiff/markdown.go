package abidiff

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"weft/gen/model"
)

// A grid is a table in Markdown.
func grid(b *bytes.Buffer, title string, head []string, rows [][]string) {
	if title != "" {
		fmt.Fprintf(b, "\n%s\n\n", title)
	}
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, r := range rows {
		for i := range r {
			r[i] = strings.ReplaceAll(r[i], "|", `\|`)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(r, " | "))
	}
}

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }

// cell is one side of a change.
func (m *Member) cell() string {
	switch {
	case m == nil:
		return "-"
	case m.Value != nil:
		return fmt.Sprint(*m.Value)
	case m.Offset == nil:
		return m.Type
	}
	return fmt.Sprintf("`%s`, %s at %d", m.Type, plural(m.Bytes, "byte"), *m.Offset)
}

// Markdown writes the difference as tables, the old side beside the new one.
func (d *Diff) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s and %s\n", d.Old, d.New)
	if len(d.Lookups) > 0 {
		var rows [][]string
		for _, l := range d.Lookups {
			rows = append(rows, []string{l.Family, l.Old.cell(), l.New.cell()})
		}
		grid(&b, "## lookups", []string{"family", d.Old, d.New}, rows)
	}
	if v := d.Vars; v != nil {
		var rows [][]string
		for _, n := range v.Added {
			rows = append(rows, []string{n, "-", "names a plugin"})
		}
		for _, n := range v.Removed {
			rows = append(rows, []string{n, "names a plugin", "-"})
		}
		grid(&b, "## variables", []string{"variable", d.Old, d.New}, rows)
	}
	if d.Does != nil {
		var rows [][]string
		for _, s := range d.Does.Begins {
			rows = append(rows, []string{s, "-", "yes"})
		}
		for _, s := range d.Does.Ends {
			rows = append(rows, []string{s, "yes", "-"})
		}
		grid(&b, "## what NCCL does with plugins", []string{"", d.Old, d.New}, rows)
	}
	for _, p := range d.Pairs {
		if p.Only != "" {
			fmt.Fprintf(&b, "\n%s is %s\n", map[bool]string{true: p.New, false: p.Old}[p.Only == "new"], map[bool]string{true: "new", false: "gone"}[p.Only == "new"])
		}
		for _, t := range p.Types {
			t.grid(&b, d)
		}
	}
	for _, t := range d.Shared {
		t.grid(&b, d)
	}
	if !d.Differ {
		b.WriteString("\nno difference\n")
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := b.WriteTo(w)
	return err
}

func (f *Finds) cell() string {
	switch {
	case len(f.Versions) == 0:
		return "-"
	case f.Takes == "":
		return vs(f.Versions) + "; takes none of weft"
	}
	return vs(f.Versions) + "; takes " + f.Takes
}

func (t *Type) grid(b *bytes.Buffer, d *Diff) {
	var rows [][]string
	for _, c := range t.Changes {
		what := c.What
		if what == Changed && !c.value() || what == Renamed {
			what += ": " + c.Says
		}
		rows = append(rows, []string{c.Member, c.Old.cell(), c.New.cell(), what})
	}
	if len(rows) == 0 {
		fmt.Fprintf(b, "\n## %s\n", t.title())
		return
	}
	grid(b, "## "+t.title(), []string{"member", d.Old, d.New, "change"}, rows)
}

// Markdown writes the tables and the releases as two tables.
func (l *List) Markdown(w io.Writer) error {
	var b bytes.Buffer
	var rows [][]string
	for _, t := range l.Tables {
		rows = append(rows, []string{t.Symbol, fmt.Sprint(t.Functions), fmt.Sprint(t.Bytes), t.Asked.String(), t.Taken.String()})
	}
	grid(&b, "", []string{"table", "functions", "bytes", "looked up by NCCL", "taken of weft by"}, rows)
	b.WriteByte('\n')
	head, rows := []string{"NCCL"}, nil
	for _, f := range model.Families {
		head = append(head, string(f))
	}
	for _, r := range l.Releases {
		cells := []string{r.Span.String()}
		for _, f := range model.Families {
			cells = append(cells, vs(r.Finds[string(f)]))
		}
		rows = append(rows, cells)
	}
	grid(&b, "", head, rows)
	_, err := b.WriteTo(w)
	return err
}

// Markdown writes what a release looks up as a table.
func (l *Looks) Markdown(w io.Writer) error {
	var b bytes.Buffer
	var rows [][]string
	for _, f := range l.Lookups {
		rows = append(rows, []string{f.Family, f.Finds.cell()})
	}
	grid(&b, "", []string{"NCCL " + l.Release, "looks up"}, rows)
	_, err := b.WriteTo(w)
	return err
}

// Markdown writes each type as a table.
func (s *Spelled) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", s.Symbol)
	for _, t := range s.Types {
		var rows [][]string
		for _, m := range t.Members {
			switch {
			case m.Value != nil:
				rows = append(rows, []string{m.Name, fmt.Sprint(*m.Value), m.Doc})
			default:
				rows = append(rows, []string{fmt.Sprint(*m.Offset), fmt.Sprint(m.Bytes), m.Name, "`" + m.Type + "`", m.Doc, m.Served})
			}
		}
		switch {
		case t.Kind == "limits" || t.Kind == "enum":
			grid(&b, "## "+strings.TrimSpace(t.Kind+" "+t.Name), []string{"name", "value", "what it is"}, rows)
		default:
			grid(&b, fmt.Sprintf("## %s %s: %s", t.Kind, t.Name, plural(t.Bytes, "byte")), []string{"offset", "bytes", "member", "type", "what it is", "weft"}, rows)
		}
	}
	_, err := b.WriteTo(w)
	return err
}
