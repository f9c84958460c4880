package plan

import (
	"fmt"

	"weft/gen/model"
)

// argument plans how the table's parameter q becomes the core's c.
func (p *planner) argument(out *Table, t *model.Table, s *Slot, c *CoreParam, q *model.Param) *Arg {
	a := &Arg{Core: c, Old: q, Conv: Pass}
	fam := string(t.Family)
	if r := p.rules.Param("convert", fam, t.Version, s.Name, q.Name); r != nil {
		a.Conv, a.C = Function, r.Words[0]
		s.Why = append(s.Why, fmt.Sprintf("%s through %s", q.Name, a.C))
		return a
	}
	switch c.Role {
	case Opaque, OpaqueOut, Memory, MemoryList, Text:
		if !similar(q.Type, c.Type) {
			p.changed(t, s, c, q)
		}
		return a
	case StructIn, StructOut:
		p.structure(out, t, s, a)
		return a
	}
	if v := s.Core.Vector; v.Has(c.Name) && c.Type.Kind == model.Pointer {
		p.listed(t, s, a)
		return a
	}
	if inner, ok := p.scalar(q.Type, c.Type); ok {
		if a.Conv = inner; inner == NonNegative {
			s.Why = append(s.Why, fmt.Sprintf("%s %s checked", q.Type, q.Name))
		}
		return a
	}
	p.changed(t, s, c, q)
	return a
}

// similar compares what crosses as a bare pointer: only the shape counts.
func similar(a, b *model.Type) bool {
	if a.IsFuncPtr() || b.IsFuncPtr() {
		return a.IsFuncPtr() && b.IsFuncPtr() && same(a, b)
	}
	x, n := deref(a)
	y, m := deref(b)
	return n == m && n > 0 && x.Kind == y.Kind && x.Size == y.Size
}

// scalar says how a value of type a becomes one of type b.
func (p *planner) scalar(a, b *model.Type) (Conv, bool) {
	switch {
	case same(a, b), widens(a, b):
		return Pass, true
	case counts(a, b):
		return NonNegative, true
	}
	return 0, false
}

// listed plans an array: as it is, made of one scalar, or element by element.
func (p *planner) listed(t *model.Table, s *Slot, a *Arg) {
	q, c := a.Old, a.Core
	a.Elem = c.Type.Elem
	if same(q.Type, c.Type) {
		return
	}
	if s.Func.Param(s.Core.Vector.Count) == nil { // one buffer per request
		if inner, ok := p.scalar(q.Type, a.Elem); ok {
			a.Conv, a.Inner = One, inner
			s.Why = append(s.Why, fmt.Sprintf("%s as an array of one", q.Name))
			return
		}
	} else if q.Type.Kind == model.Pointer {
		if inner, ok := p.scalar(q.Type.Elem, a.Elem); ok {
			a.Conv, a.Inner = List, inner
			s.Why = append(s.Why, fmt.Sprintf("%s %s copied", q.Type, q.Name))
			return
		}
	}
	p.changed(t, s, c, q)
}

// structure plans a struct parameter.
func (p *planner) structure(out *Table, t *model.Table, s *Slot, a *Arg) {
	q, c := a.Old, a.Core
	from, stars := deref(q.Type)
	to, want := deref(c.Type)
	if stars != want || from.Record == nil || to.Record == nil {
		p.changed(t, s, c, q)
		return
	}
	forced := false
	for _, r := range p.rules.Verb("after") {
		forced = forced || r.Family == string(t.Family) && r.Slot == s.Name && r.Covers(t.Version) && c.Role == StructOut
	}
	if same(from, to) && !forced {
		return
	}
	if stars != 1 {
		p.changed(t, s, c, q)
		return
	}
	lower := c.Role == StructOut
	a.Copy = p.copyOf(out, s, from, to, lower)
	switch {
	case lower:
		a.Conv = Lower
	case s.Core.Vector.Has(c.Name):
		a.Conv = LiftList
	default:
		a.Conv = Lift
	}
	s.Why = append(s.Why, fmt.Sprintf("%s by field", q.Name))
}

func (p *planner) changed(t *model.Table, s *Slot, c *CoreParam, q *model.Param) {
	p.missing(q.Pos, fmt.Sprintf("parameter %q is %s, but %s of %s wants %s (%s)", q.Name, q.Type, s.Core.CFunc, p.unit.Newest(t.Family).Record.Name, c.Type, c.Pos),
		fmt.Sprintf("convert %s %%s %s.%s CFUNC", t.Family, s.Name, q.Name))
}
