package drop

import (
	"fmt"
	"io/fs"
	"regexp"
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
		value, name := map[string]int64{}, map[int64]string{}
		for _, v := range mine.Values {
			value[v.Name] = v.Value
			name[v.Value] = v.Name
		}
		for _, v := range e.Values {
			was, known := value[v.Name]
			switch {
			case known && was == v.Value, lock.Counter(v.Name):
			case known:
				c := &lock.Change{Kind: lock.Changed,
					Old: &lock.Line{Struct: lock.EnumName(mine), Field: v.Name, Offset: was, Size: e.Size, Type: "enumerator"},
					New: &lock.Line{Struct: lock.EnumName(e), Field: v.Name, Offset: v.Value, Size: e.Size, Type: "enumerator", Pos: v.Pos}}
				rep.broken = append(rep.broken, c)
			case name[v.Value] != "" && !lock.Counter(name[v.Value]):
				rep.notes = append(rep.notes, fmt.Sprintf("%v: %s = %d is called %s here", v.Pos, v.Name, v.Value, name[v.Value]))
			default:
				if arriving {
					rep.add(mine, v)
				}
				rep.notes = append(rep.notes, fmt.Sprintf("%v: new value %s.%s = %d", v.Pos, lock.EnumName(mine), v.Name, v.Value))
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

var (
	pluginMacro = regexp.MustCompile(`^NCCL_(NET|COLLNET|PTR|PROFILER|MAX_NET)_\w+$`)
	otherMacro  = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// limits compares the macros that all versions share. Of an older release a
// difference is noted; of a current one new ones are taken over, and a changed
// one is refused unless a rule says what is done about it.
func (rep *report) limits(ours, theirs *model.Unit, limits []limit) {
	arriving := current(ours, theirs)
	for _, m := range theirs.Macros {
		mine := ours.Macro(m.Name)
		switch {
		case m.Kind != model.MacroInt && m.Kind != model.MacroUint:
		case mine == nil && pluginMacro.MatchString(m.Name) && !otherMacro.MatchString(m.Text) && lock.Version(m.Name) == 0 && arriving && !inTable(theirs, m):
			rep.macros = append(rep.macros, m)
			rep.notes = append(rep.notes, fmt.Sprintf("%v: new macro %s = %s", m.Pos, m.Name, value(m)))
		case mine == nil || number(m) == number(mine): // signed or not
		case !arriving:
			rep.notes = append(rep.notes, fmt.Sprintf("%v: %s is %s there, %s here", m.Pos, m.Name, m.Text, mine.Text))
		case !limited(limits, m):
			rep.broken = append(rep.broken, &lock.Change{Kind: lock.Changed,
				Old: &lock.Line{Struct: "-", Field: m.Name, Offset: number(mine), Type: "macro", Pos: mine.Pos},
				New: &lock.Line{Struct: "-", Field: m.Name, Offset: number(m), Type: "macro", Pos: m.Pos}})
		}
	}
}

func limited(limits []limit, m *model.Macro) bool {
	for _, l := range limits {
		if l.name == m.Name && l.value == number(m) {
			return true
		}
	}
	return false
}

func number(m *model.Macro) int64 {
	if m.Kind == model.MacroUint {
		return int64(m.Uint)
	}
	return m.Int
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
