package plan

import (
	"fmt"
	"slices"
	"strings"

	"weft/gen/model"
	"weft/gen/rules"
)

// Served says who serves a function of the canonical table.
type Served uint8

// Fast is C in transport/fastpath, Slow the Go core, Native C beside that core;
// what is Unserved nobody has written yet, so Go returns "unsupported"; a Null
// slot is NULL by rule.
const (
	Fast Served = iota + 1
	Slow
	Native
	Unserved
	Null
)

// Role says how a parameter crosses into the core.
type Role uint8

// The roles.
const (
	Value      Role = iota + 1 // as it is
	Opaque                     // void* or function pointer -> uintptr_t
	OpaqueOut                  // void** -> uintptr_t*
	Memory                     // void*, dereferenced by the core
	MemoryList                 // void**, an array of such
	StructIn                   // struct that the core reads
	StructOut                  // struct that the core writes
	Text                       // const char*
)

// Core is one function of the canonical interface.
type Core struct {
	Family model.Family
	Slot   string
	Served Served
	CFunc  string // weft_net_listen
	Params []*CoreParam
	Func   *model.Func // canonical slot, or fast prototype
	Vector *Vector
	Reason string // Null
	Doc    string
	Pos    model.Pos
}

// CoreParam is one parameter of a core function.
type CoreParam struct {
	Name    string
	Type    *model.Type // newest versions
	C       string      // type in the prototype
	Role    Role
	Default string // C, for tables that lack it; extra parameters only
	Extra   bool
	Pos     model.Pos
}

// Vector says that parameters are arrays of the same length.
type Vector struct {
	Count  string
	Max    string
	Params []string
}

// Has reports whether the parameter is one of the arrays.
func (v *Vector) Has(param string) bool {
	if v == nil {
		return false
	}
	for _, n := range v.Params {
		if n == param {
			return true
		}
	}
	return false
}

// Param returns a parameter by name, or nil.
func (c *Core) Param(name string) *CoreParam {
	for _, p := range c.Params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (p *planner) coreOf(t *model.Table) {
	for _, f := range slots(t) {
		c := &Core{Family: t.Family, Slot: f.Name, Func: f.Type.Elem.Func, Doc: f.Doc, Pos: f.Pos}
		fam := string(t.Family)
		if r := p.rules.Slot("null", fam, t.Version, f.Name); r != nil {
			c.Served, c.Reason = Null, r.Reason
		} else if r := p.rules.Slot("fast", fam, t.Version, f.Name); r != nil {
			c.Served, c.CFunc = Fast, r.Words[0]
			p.fastParams(c, t, f, r.Pos())
		} else {
			c.Served, c.CFunc = Unserved, "weft_"+t.Family.C()+"_"+f.Name
			native := p.rules.Slot("native", fam, t.Version, f.Name)
			if p.rules.Slot("slow", fam, t.Version, f.Name) != nil {
				c.Served = Slow
			} else if native != nil {
				c.Served = Native
			} else {
				p.noted(fam, t.Version, f.Name, fmt.Sprintf("is new: it returns \"unsupported\" until somebody serves it and writes: slow %s %s", fam, f.Name))
			}
			p.slowParams(c, t)
			if native != nil {
				p.nativeParams(c, t, native)
			}
		}
		p.vector(c, t)
		p.cores[fam+"."+f.Name] = c
		p.plan.Cores = append(p.plan.Cores, c)
	}
}

// fastParams takes the parameters of the C prototype, which is fixed.
func (p *planner) fastParams(c *Core, t *model.Table, slot *model.Field, pos string) {
	fn := p.fast.Func(c.CFunc)
	if fn == nil {
		p.errorf("%s: fast: transport/fastpath/fastpath.h declares no %s", pos, c.CFunc)
		return
	}
	for _, q := range fn.Params {
		if q.Name == "" {
			p.errorf("%s: %s: a parameter has no name, and tables are matched by name", q.Pos, fn.Name)
			continue
		}
		c.Params = append(c.Params, &CoreParam{Name: q.Name, Type: q.Type, C: q.Type.String(), Role: Value, Pos: q.Pos})
	}
	for _, q := range c.Func.Params {
		if fn.Param(q.Name) == nil {
			p.dropped(c, t, q.Name, q.Pos)
		}
	}
	c.Func = fn
}

// dropped notes a parameter that C written by hand does not take, until a rule
// says that it need not.
func (p *planner) dropped(c *Core, t *model.Table, param string, pos model.Pos) {
	if p.rules.Param("drop", string(t.Family), t.Version, c.Slot, param) != nil {
		return
	}
	p.noted(string(t.Family), t.Version, c.Slot, fmt.Sprintf("has a new %s (%s:%d); %s does not take it, and it is dropped: have it take it, or write: drop %s v%d.. %s.%s -- WHY",
		param, pos.File, pos.Line, c.CFunc, t.Family, t.Version, c.Slot, param))
}

// nativeParams leaves the parameters that the rule names, in its order.
func (p *planner) nativeParams(c *Core, t *model.Table, r *rules.Rule) {
	all := c.Params
	c.Params = nil
	for _, name := range r.Words {
		i := slices.IndexFunc(all, func(q *CoreParam) bool { return q.Name == name })
		if i < 0 {
			p.errorf("%s: native: %s.%s has no parameter %s", r.Pos(), t.Record.Name, c.Slot, name)
			continue
		}
		c.Params = append(c.Params, all[i])
	}
	for _, q := range all {
		if c.Param(q.Name) == nil {
			p.dropped(c, t, q.Name, q.Pos)
		}
	}
}

// slowParams derives the prototype of a Go function from the newest header.
func (p *planner) slowParams(c *Core, t *model.Table) {
	fam := string(t.Family)
	for _, r := range p.rules.Verb("extra") {
		if r.Family == fam && r.Slot == c.Slot && strings.TrimRight(r.Words[0], "*") == "int" {
			c.Params = append(c.Params, &CoreParam{
				Name: r.Use().Words[1], Type: &model.Type{Kind: model.Int, Name: "int", Size: 4, Align: 4},
				C: "int", Role: Value, Default: r.C, Extra: true,
			})
		}
	}
	for i, q := range c.Func.Params {
		if q.Name == "" {
			p.errorf("%s: %s.%s: parameter %d has no name, and tables are matched by name", q.Pos, t.Record.Name, c.Slot, i+1)
			continue
		}
		c.Params = append(c.Params, p.slowParam(c, t, q.Name, q.Type, q.Pos))
	}
	for _, r := range p.rules.Verb("extra") {
		if r.Family != fam || r.Slot != c.Slot || c.Param(r.Words[1]) != nil {
			continue
		}
		typ := p.curPointer(r.Use().Words[0])
		if typ == nil {
			p.errorf("%s: extra: %q is neither int nor a pointer to a versioned struct of the headers", r.Pos(), r.Words[0])
			continue
		}
		q := p.slowParam(c, t, r.Words[1], typ, model.Pos{File: r.File, Line: r.Line})
		q.Default, q.Extra = r.C, true
		c.Params = append(c.Params, q)
	}
}

func (p *planner) slowParam(c *Core, t *model.Table, name string, typ *model.Type, pos model.Pos) *CoreParam {
	q := &CoreParam{Name: name, Type: typ, C: typ.String(), Role: Value, Pos: pos}
	fam := string(t.Family)
	where := func() string {
		return fmt.Sprintf("%s: %s.%s: parameter %q (%s)", pos, t.Record.Name, c.Slot, name, typ)
	}
	decided := func(verb string) bool { return p.rules.Param(verb, fam, t.Version, c.Slot, name) != nil }
	switch {
	case typ.IsFuncPtr():
		q.Role, q.C = Opaque, "uintptr_t"
	case typ.IsPtrTo(model.Void):
		switch {
		case decided("opaque"):
			q.Role, q.C = Opaque, "uintptr_t"
		case decided("memory"):
			q.Role, q.C = Memory, "void*"
		default:
			p.errorf("%s is an undecided void*; write in gen/rules: opaque %s %s.%s  (the core hands it on) or: memory %s %s.%s  (the core reads or writes there)",
				where(), fam, c.Slot, name, fam, c.Slot, name)
		}
	case typ.Kind == model.Pointer && typ.Elem.IsPtrTo(model.Void):
		switch {
		case decided("opaque"):
			q.Role, q.C = OpaqueOut, "uintptr_t*"
		case decided("memory"):
			q.Role, q.C = MemoryList, "void**"
		default:
			p.errorf("%s is an undecided void**; write in gen/rules: opaque %s %s.%s  (where a value is stored) or: memory %s %s.%s  (an array of pointers to memory)",
				where(), fam, c.Slot, name, fam, c.Slot, name)
		}
	case typ.Kind == model.Pointer && typ.Elem.Record != nil, typ.Kind == model.Pointer && typ.Elem.Kind == model.Pointer && typ.Elem.Elem.Record != nil:
		q.Type = p.newest(typ)
		q.C = p.curSpelling(typ)
		switch {
		case decided("in"):
			q.Role = StructIn
		case decided("out"):
			q.Role = StructOut
		default:
			p.errorf("%s: is the struct read or written? write in gen/rules: in %s %s.%s  or: out %s %s.%s", where(), fam, c.Slot, name, fam, c.Slot, name)
		}
	case typ.Kind == model.Pointer && typ.Elem.Size == 1 && typ.Elem.Const:
		q.Role, q.C = Text, "char*"
	case typ.Kind == model.Enumeration:
		q.Type = p.newest(typ)
		q.C = p.curSpelling(typ)
	case c.Served == Native: // C takes it as it is
	case typ.Kind == model.Pointer && typ.Elem.Kind == model.Pointer, typ.Kind == model.Pointer && typ.Elem.Const:
		p.errorf("%s: the generator does not know how to pass this type", where())
	}
	return q
}

func (p *planner) vector(c *Core, t *model.Table) {
	for _, r := range p.rules.Verb("vector") {
		if r.Family != string(t.Family) || r.Slot != c.Slot {
			continue
		}
		v := &Vector{Count: r.Use().Words[0], Max: r.Words[1], Params: r.Words[2:]}
		for _, n := range append([]string{v.Count}, v.Params...) {
			if c.Served != Null && c.Param(n) == nil {
				p.errorf("%s: vector: %s has no parameter %q", r.Pos(), c.CFunc, n)
			}
		}
		c.Vector = v
	}
}
