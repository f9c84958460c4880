package lock

import (
	"fmt"
	"regexp"
	"strings"
)

// Kind is the kind of a change.
type Kind uint8

// A line was added or removed, says something else, or says the same in other
// words: an alias of the type, an equal struct under another name.
const (
	Added Kind = iota + 1
	Removed
	Changed
	Respelled
)

// Change is a difference in one member. Old or New is nil.
type Change struct {
	Kind     Kind
	Old, New *Line
}

// Line returns the line that the change is about.
func (c *Change) Line() *Line {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Member names what changed: "ncclNetProperties_v12_t.guid".
func (c *Change) Member() string {
	l := c.Line()
	switch {
	case l.Struct == "-":
		return l.Field
	case l.Field == Whole:
		return l.Struct
	}
	return l.Struct + "." + l.Field
}

func (c *Change) String() string {
	return fmt.Sprintf("%s: %s -> %s", c.Member(), say(c.Old), say(c.New))
}

func say(l *Line) string {
	switch {
	case l == nil:
		return "none"
	case l.Type == "enumerator" || l.Type == "macro":
		return fmt.Sprint(l.Offset)
	case l.Field == Whole:
		return fmt.Sprintf("%s, %d bytes", l.Type, l.Size)
	}
	return fmt.Sprintf("%s, %d bytes at %d", l.Type, l.Size, l.Offset)
}

// Diff lists the differences in the order of new, then what is missing there
// in the order of old.
func Diff(old, new []Line) []*Change {
	before, after := index(old), index(new)
	var cs []*Change
	for i := range new {
		n := &new[i]
		o := before[n.key()]
		switch {
		case o == nil:
			cs = append(cs, &Change{Added, nil, n})
		case o.same(*n):
		case o.Offset == n.Offset && o.Size == n.Size && otherWords(o, n):
			cs = append(cs, &Change{Respelled, o, n})
		default:
			cs = append(cs, &Change{Changed, o, n})
		}
	}
	for i := range old {
		if after[old[i].key()] == nil {
			cs = append(cs, &Change{Removed, &old[i], nil})
		}
	}
	return cs
}

func index(ls []Line) map[string]*Line {
	m := make(map[string]*Line, len(ls))
	for i := range ls {
		m[ls[i].key()] = &ls[i]
	}
	return m
}

// counter matches enumerators that count the others: they grow with the list.
var counter = regexp.MustCompile(`Num[A-Z]\w*$`)

// Breaks reports whether a change contradicts what was released, given the
// lines known before: known types must not change, but what all versions
// share may grow.
func Breaks(c *Change, known map[string]bool) bool {
	l := c.Line()
	switch c.Kind {
	case Respelled:
		return false
	case Added:
		return known[l.Struct] && l.Struct != "-" && l.Type != "enumerator"
	case Changed:
		if l.Type == "enumerator" && counter.MatchString(l.Field) && c.New.Offset > c.Old.Offset {
			return false
		}
	}
	return true
}

// Counter reports whether an enumerator counts the others.
func Counter(name string) bool { return counter.MatchString(name) }

// Known returns the names of all types that have lines.
func Known(ls []Line) map[string]bool {
	m := map[string]bool{}
	for _, l := range ls {
		m[l.Struct] = true
	}
	return m
}

// BrokenError says that released declarations changed.
type BrokenError struct {
	Changes []*Change
}

func (e *BrokenError) Error() string {
	var b strings.Builder
	for i, c := range e.Changes {
		if i > 0 {
			b.WriteByte('\n')
		}
		l := c.Line()
		fmt.Fprintf(&b, "%v: %s changed: %v", l.Pos, version(l.Version), c)
	}
	b.WriteString("\nA released table never changes, nor what all versions share.")
	e.rules(&b, "If a release may say so and headers/ should not", func(c *Change) string {
		if c.New.Type != "macro" {
			return ""
		}
		return fmt.Sprintf("limit %s %d -- WHY", c.New.Field, c.New.Offset)
	})
	e.rules(&b, "If such copies exist upstream and one reading serves both", func(c *Change) string {
		if c.Old.Field == Whole || c.Old.Offset != c.New.Offset || c.Old.Type == c.New.Type || strings.Contains(c.New.Type, "(*)") || c.New.Version == 0 {
			return ""
		}
		return fmt.Sprintf("drift %s v%d %s %s HOW -- WHY", Stem(c.New.Struct), c.New.Version, c.New.Field, strings.ReplaceAll(c.New.Type, " ", "_"))
	})
	return b.String()
}

// rules says which lines would allow changes, if there are any.
func (e *BrokenError) rules(b *strings.Builder, when string, rule func(*Change) string) {
	for _, c := range e.Changes {
		if c.Kind != Changed {
			continue
		}
		if line := rule(c); line != "" {
			if when != "" {
				fmt.Fprintf(b, "\n%s, add to gen/rules/drift.rules:", when)
				when = ""
			}
			fmt.Fprintf(b, "\n%s", line)
		}
	}
}

func version(v int) string {
	if v == 0 {
		return "what all versions share"
	}
	return fmt.Sprint("version ", v)
}

// Stem returns a type's name without its version.
func Stem(name string) string { return suffix.ReplaceAllString(name, "") }

// Merge returns the lines of LOCK after a run that found new in the headers:
// it fails if something known changed and no drift rule covers it.
func Merge(old, new []Line, drifts []Drift) ([]Line, error) {
	known := Known(old)
	var broken []*Change
	keep := map[string]Line{}
	for _, c := range Diff(old, new) {
		switch {
		case !Breaks(c, known):
		case Covered(c, drifts):
			keep[c.Old.key()] = *c.Old
		default:
			broken = append(broken, c)
		}
	}
	if len(broken) > 0 {
		return nil, &BrokenError{broken}
	}
	merged := append([]Line(nil), new...)
	for i, l := range merged {
		if o, ok := keep[l.key()]; ok {
			merged[i] = o
		}
	}
	return merged, nil
}
