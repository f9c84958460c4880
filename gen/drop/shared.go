package drop

import (
	"fmt"
	"io/fs"
	"strconv"

	"weft/gen/lock"
	"weft/gen/model"
)

// current reports whether a source is of a release at least as new as our
// newest headers. What an older one shares among versions is history.
func current(ours, theirs *model.Unit) bool {
	for _, f := range model.Families {
		if t := theirs.Newest(f); t != nil && ours.Newest(f) != nil && t.Version < ours.Newest(f).Version {
			return false
		}
	}
	return true
}

// enums compares the shared enumerations: values must agree, and new ones are
// taken over.
func (rep *report) enums(ours, theirs *model.Unit) {
	arriving := current(ours, theirs)
	for _, e := range theirs.Enums {
		mine := ours.Enum(e.Name)
		if e.Name == "" {
			mine = enumCalled(ours, lock.EnumName(e))
		}
		if mine == nil {
			continue
		}
		called := map[int64]string{}
		for _, v := range mine.Values {
			called[v.Value] = v.Name
		}
		name := lock.EnumName(mine)
		for _, c := range lock.Diff(lock.OfEnum(name, mine), lock.OfEnum(name, e)) {
			l := c.Line()
			switch {
			case c.Kind == lock.Removed, l.Field == lock.Whole, lock.Counter(l.Field):
			case c.Kind == lock.Changed:
				rep.broken = append(rep.broken, c)
			case called[l.Offset] != "" && !lock.Counter(called[l.Offset]):
				rep.notes = append(rep.notes, fmt.Sprintf("%v: %s = %d is called %s here", l.Pos, l.Field, l.Offset, called[l.Offset]))
			default:
				if arriving {
					rep.add(mine, e.Value(l.Field))
				}
				rep.notes = append(rep.notes, fmt.Sprintf("%v: new value %s.%s = %d", l.Pos, name, l.Field, l.Offset))
			}
		}
	}
}

// add remembers a new value, once.
func (rep *report) add(e *model.Enum, v *model.EnumValue) {
	for i := range rep.grown {
		if g := &rep.grown[i]; g.enum == e {
			for _, w := range g.values {
				if w.Name == v.Name {
					return
				}
			}
			g.values = append(g.values, v)
			return
		}
	}
	rep.grown = append(rep.grown, growth{e, []*model.EnumValue{v}})
}

func enumCalled(u *model.Unit, name string) *model.Enum {
	for _, e := range u.Enums {
		if lock.EnumName(e) == name {
			return e
		}
	}
	return nil
}

// limit is a macro that releases change: a rule `limit NAME VALUE -- WHY`.
type limit struct {
	name  string
	value int64
	pos   string
}

func limitsOf(root fs.FS) ([]limit, error) {
	set, err := ruleSet(root)
	if err != nil {
		return nil, err
	}
	var ls []limit
	for _, r := range set.Verb("limit") {
		v, err := strconv.ParseInt(r.Words[1], 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: limit: %q is not a number", r.Pos(), r.Words[1])
		}
		ls = append(ls, limit{r.Words[0], v, r.Pos()})
	}
	return ls, nil
}

// limits compares the macros that all versions share. Of an older release a
// difference is noted; of a current one new ones are taken over, and a changed
// one is refused unless a rule says what is done about it.
func (rep *report) limits(ours, theirs *model.Unit, limits []limit) {
	arriving := current(ours, theirs)
	for _, c := range lock.Diff(macros(ours), macros(theirs)) {
		l := c.Line()
		m, mine := theirs.Macro(l.Field), ours.Macro(l.Field)
		switch {
		case c.Kind == lock.Removed:
		case mine == nil && m.IsLimit() && lock.Version(m.Name) == 0 && arriving && !inTable(theirs, m):
			rep.macros = append(rep.macros, m)
			rep.notes = append(rep.notes, fmt.Sprintf("%v: new macro %s = %s", m.Pos, m.Name, value(m)))
		case mine == nil:
		case !arriving:
			rep.notes = append(rep.notes, fmt.Sprintf("%v: %s is %s there, %s here", m.Pos, m.Name, m.Text, mine.Text))
		case c.Kind == lock.Changed && !limited(limits, l):
			rep.broken = append(rep.broken, c)
		}
	}
}

func macros(u *model.Unit) []lock.Line { return lock.Of(&model.Unit{Macros: u.Macros}) }

func limited(limits []limit, l *lock.Line) bool {
	for _, x := range limits {
		if x.name == l.Field && x.value == l.Offset {
			return true
		}
	}
	return false
}

// inTable reports whether a macro stands in the header of a table, which is
// restated as a whole.
func inTable(u *model.Unit, m *model.Macro) bool {
	for _, t := range u.Tables {
		if t.Header == m.Pos.File {
			return true
		}
	}
	return false
}
