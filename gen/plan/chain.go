package plan

import (
	"fmt"
	"slices"

	"weft/gen/model"
	"weft/gen/rules"
)

// Chained is a table of another library, as the core calls it: in the terms of
// the newest version, whatever its own is.
type Chained struct {
	*model.Table
	Copies []*Copy
	Calls  []*ChainedCall
	Kinds  []string // enumerators of the unions' selectors that its structs have members for, or that need none
}

// ChainedCall is one function of it. Its parameters are those that the rule names,
// so that C written by hand can call it whatever newer headers add. Its arguments
// are those of the table, each made of the parameter of that name.
type ChainedCall struct {
	Name   string
	Params []*CoreParam
	Func   *model.Func
	Args   []*Arg // nil Core: nothing is known of it, and the table gets zero
	Before []*rules.Rule
	// Required are the parameters of the table that are never NULL.
	Required []string
}

// chained plans the calls of the tables that rules want to be called.
func (p *planner) chained() {
	for _, t := range p.unit.Tables {
		from := p.number("from", t.Family)
		wanted := slices.ContainsFunc(p.rules.Verb("chain"), func(r *rules.Rule) bool { return r.Family == string(t.Family) })
		if wanted && from > 0 && t.Version >= from {
			p.plan.Chained = append(p.plan.Chained, p.chainedTable(t))
		}
	}
	p.kinds()
}

func (p *planner) chainedTable(t *model.Table) *Chained {
	out := &Table{Table: t, called: true}
	c := &Chained{Table: t}
	for _, f := range slots(t) {
		r := p.rules.Slot("chain", string(t.Family), t.Version, f.Name)
		if r == nil {
			continue // nobody calls it
		}
		p.current(t, f)
		core := p.cores[string(t.Family)+"."+f.Name]
		if core == nil {
			p.missing(f.Pos, fmt.Sprintf("function %q is not in the newest table, and a chained one must be called", f.Name))
			continue
		}
		c.Calls = append(c.Calls, p.chainedCall(out, t, f, core, r))
	}
	c.Copies = out.Copies
	for _, copy := range c.Copies {
		if copy.Selector == nil {
			c.Kinds = append(c.Kinds, known(copy)...)
		}
	}
	return c
}

func (p *planner) chainedCall(out *Table, t *model.Table, f *model.Field, core *Core, r *rules.Rule) *ChainedCall {
	call := &ChainedCall{Name: f.Name, Func: f.Type.Elem.Func}
	for _, name := range r.Words {
		q := core.Param(name)
		if q == nil {
			p.errorf("%s: chain: %s has no parameter %s", r.Pos(), core.CFunc, name)
			return call
		}
		call.Params = append(call.Params, q)
	}
	for _, r := range p.rules.Verb("chained") {
		if r.Family == string(t.Family) && r.Slot == f.Name && r.Covers(t.Version) {
			call.Before = append(call.Before, r.Use())
		}
	}
	s := &Slot{Name: f.Name, Func: call.Func, Core: core, Pos: f.Pos}
	for _, q := range call.Func.Params {
		name := q.Name
		if r := p.rules.Param("rename", string(t.Family), t.Version, f.Name, name); r != nil {
			name = r.Words[0]
		}
		a := &Arg{Old: q, Conv: Pass}
		if slices.Contains(r.Words, name) {
			a.Core = core.Param(name)
		}
		if a.Core != nil && a.Core.Role == StructIn {
			from, stars := deref(a.Core.Type)
			to, want := deref(q.Type)
			switch {
			case stars != 1 || want != 1 || from.Record == nil || to.Record == nil:
				p.changed(t, s, a.Core, q)
			case !same(from, to) || hasUnion(from.Record): // a member must be known before it is copied
				a.Conv, a.Copy = Lower, p.copyOf(out, s, to, from, true)
			}
		}
		call.Args = append(call.Args, a)
	}
	p.required(t, s)
	call.Required = s.Required
	return call
}

// known are the enumerators for which a union of the struct has a member.
func known(c *Copy) []string {
	var names []string
	for _, s := range c.Steps {
		for _, k := range s.Cases {
			names = append(names, k.Values...)
		}
	}
	return names
}

// kinds completes the enumerators of every table by their neighbours that
// select no member in any version: what has no member needs none.
func (p *planner) kinds() {
	selecting := map[string]bool{}
	for _, c := range p.plan.Chained {
		for _, name := range c.Kinds {
			selecting[name] = true
		}
	}
	for _, e := range p.unit.Enums {
		if !slices.ContainsFunc(e.Values, func(v *model.EnumValue) bool { return selecting[v.Name] }) {
			continue
		}
		for _, v := range e.Values {
			for _, c := range p.plan.Chained {
				if !selecting[v.Name] {
					c.Kinds = append(c.Kinds, v.Name)
				}
			}
		}
	}
}

// hasUnion reports whether a struct has an anonymous union.
func hasUnion(r *model.Record) bool {
	return slices.ContainsFunc(r.Fields, func(f *model.Field) bool { return f.Name == "" })
}
