package plan

import (
	"fmt"
	"strings"

	"weft/gen/model"
	"weft/gen/rules"
)

// How says how a slot of a table is served.
type How uint8

// Direct only casts; a Shim converts; an Adapter is hand-written; a Null slot
// is NULL; a Stub is forwarded to a core function that nobody has written yet and
// that returns "unsupported".
const (
	Direct How = iota + 1
	Shim
	Adapter
	NullSlot
	Stub
)

func (h How) String() string {
	return [...]string{"", "direct", "shim", "adapter", "NULL", "stub"}[h]
}

// Table is one exported table.
type Table struct {
	*model.Table
	Name   string // value of .name
	Slots  []*Slot
	Copies []*Copy // struct conversions that the slots use, callees first
	called bool    // by the core, so that it writes what hosts write for us
}

// Slot is one function of it.
type Slot struct {
	Name    string
	How     How
	Func    *model.Func
	Core    *Core
	Adapter string
	Args    []*Arg
	// Required are the parameters of the table that must not be NULL.
	Required []string
	Excused  bool // it succeeds where the library cannot start
	Before   []*rules.Rule
	After    []*rules.Rule
	Why      []string // what makes it a shim; the matrix shows it
	Reason   string   // Null, Adapter
	Pos      model.Pos
}

// Conv says how an argument of the core is made.
type Conv uint8

// The conversions.
const (
	Pass        Conv = iota + 1 // the parameter, cast where C needs it
	Preset                      // C text: the table has no such parameter
	NonNegative                 // an int that is refused when negative
	Function                    // CFunc(parameter)
	One                         // the address of a scalar: an array of one
	OneZero                     // the address of a value that the table does not give
	List                        // an array converted element by element
	Lift                        // a struct converted to the newest version
	LiftList                    // an array of those
	Lower                       // a struct that the core writes, converted back
)

// Arg is one argument of the call into the core.
type Arg struct {
	Core  *CoreParam
	Old   *model.Param // nil for Preset and OneZero
	Conv  Conv
	C     string // Preset: text; Function: its name
	Elem  *model.Type
	Inner Conv // One, List: how an element is converted
	Copy  *Copy
}

func (p *planner) table(t *model.Table) {
	out := &Table{Table: t, Name: p.plan.Name}
	for _, f := range slots(t) {
		p.current(t, f)
		out.Slots = append(out.Slots, p.slot(out, t, f))
	}
	p.plan.Tables = append(p.plan.Tables, out)
}

func (p *planner) slot(out *Table, t *model.Table, f *model.Field) *Slot {
	fam := string(t.Family)
	s := &Slot{Name: f.Name, Func: f.Type.Elem.Func, Pos: f.Pos}
	if r := p.rules.Slot("null", fam, t.Version, f.Name); r != nil {
		s.How, s.Reason = NullSlot, r.Reason
		return s
	}
	if r := p.rules.Slot("adapter", fam, t.Version, f.Name); r != nil {
		s.How, s.Adapter, s.Reason = Adapter, r.Words[0], r.Reason
		p.required(t, s)
		return s
	}
	name := f.Name
	if r := p.rules.Slot("retitle", fam, t.Version, name); r != nil {
		name = r.Words[0]
		s.Why = append(s.Why, f.Name+" is "+name)
	}
	s.Core = p.cores[fam+"."+name]
	newest := p.unit.Newest(t.Family)
	if s.Core == nil {
		p.missing(f.Pos, fmt.Sprintf("function %q is not in %s any more, and tables that have it must go on", f.Name, newest.Record.Name),
			fmt.Sprintf("adapter %s %%s %s CFUNC -- WHY", fam, f.Name), fmt.Sprintf("null %s %%s %s -- WHY", fam, f.Name))
		return s
	}
	if s.Core.Served == Null {
		p.missing(f.Pos, fmt.Sprintf("function %q is NULL in %s but not here", f.Name, newest.Record.Name), fmt.Sprintf("null %s %%s %s -- WHY", fam, f.Name))
		return s
	}
	p.arguments(out, t, s)
	p.required(t, s)
	s.Excused = p.rules.Slot("excused", fam, t.Version, name) != nil
	for _, verb := range []string{"before", "after"} {
		for _, r := range p.rules.Verb(verb) {
			if r.Family == fam && r.Slot == f.Name && r.Covers(t.Version) {
				r.Use()
				if verb == "before" {
					s.Before = append(s.Before, r)
				} else {
					s.After = append(s.After, r)
				}
				s.Why = append(s.Why, fmt.Sprintf("`%s` %s the call", strings.TrimSuffix(r.C, ";"), verb))
			}
		}
	}
	switch {
	case len(s.Why) > 0:
		s.How = Shim
	case s.Core.Served == Unserved:
		s.How = Stub
	default:
		s.How = Direct
	}
	return s
}

// arguments finds, for each parameter of the core, what the table gives.
func (p *planner) arguments(out *Table, t *model.Table, s *Slot) {
	fam := string(t.Family)
	given := map[string]*model.Param{}
	for i, q := range s.Func.Params {
		name := q.Name
		if name == "" {
			p.missing(s.Pos, fmt.Sprintf("parameter %d has no name, and tables are matched by name", i+1))
			continue
		}
		if r := p.rules.Param("rename", fam, t.Version, s.Name, name); r != nil {
			s.Why = append(s.Why, name+" is "+r.Words[0])
			name = r.Words[0]
		}
		given[name] = q
		if s.Core.Param(name) != nil {
			continue
		}
		if p.rules.Param("drop", fam, t.Version, s.Name, q.Name) != nil {
			s.Why = append(s.Why, q.Name+" dropped")
			continue
		}
		if (s.Core.Served == Fast || s.Core.Served == Native) && p.newestHas(t.Family, s.Core.Slot, name) {
			continue // noted when the core was planned
		}
		p.missing(q.Pos, fmt.Sprintf("parameter %q (%s) is not taken by %s", q.Name, q.Type, s.Core.CFunc),
			fmt.Sprintf("rename %s %%s %s.%s NEWNAME", fam, s.Name, q.Name), fmt.Sprintf("drop %s %%s %s.%s -- WHY", fam, s.Name, q.Name))
	}
	for _, c := range s.Core.Params {
		if q := given[c.Name]; q != nil {
			s.Args = append(s.Args, p.argument(out, t, s, c, q))
		} else {
			s.Args = append(s.Args, p.preset(t, s, c, given))
		}
	}
}

// newestHas says whether the slot of the newest header has the parameter too.
func (p *planner) newestHas(family model.Family, slot, param string) bool {
	f, _ := p.unit.Newest(family).Record.Field(slot)
	return f != nil && f.Type.IsFuncPtr() && f.Type.Elem.Func.Param(param) != nil
}

// preset plans a parameter that the table does not have.
func (p *planner) preset(t *model.Table, s *Slot, c *CoreParam, given map[string]*model.Param) *Arg {
	a := &Arg{Core: c, Conv: Preset, C: c.Default}
	r := p.rules.Param("default", string(t.Family), t.Version, s.Name, c.Name)
	switch {
	case r != nil:
		a.C = r.C
	case a.C == "":
		a.C = zero(c)
		if v := s.Core.Vector; v != nil && v.Count == c.Name {
			break // an array of one
		}
		p.noted(string(t.Family), t.Version, s.Name, fmt.Sprintf("has no %s; the core gets %s", c.Name, a.C))
	}
	if v := s.Core.Vector; v.Has(c.Name) && given[v.Count] == nil && a.C != "NULL" {
		a.Conv, a.Elem = OneZero, c.Type.Elem
	}
	if v := s.Core.Vector; v != nil && v.Count == c.Name {
		a.C = "1"
	}
	why := c.Name + " = " + strings.ReplaceAll(a.C, "$N", "the version")
	a.C = strings.ReplaceAll(a.C, "$N", fmt.Sprint(t.Version))
	if !c.Extra || r != nil { // else as in the canonical table: the plugin is told, nothing is converted
		s.Why = append(s.Why, why)
	}
	return a
}

// zero is what a core parameter gets when nobody gives it.
func zero(c *CoreParam) string {
	if c.Type.Kind == model.Pointer && c.Role != Opaque {
		return "NULL"
	}
	return "0"
}
