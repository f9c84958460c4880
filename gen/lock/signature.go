package lock

import "weft/gen/model"

// Param is a difference in one parameter of a function, or in its result. Old
// or New is nil. Respelled are parameters of another name.
type Param struct {
	Kind     Kind
	Old, New *model.Param
	Before   string // the type, as its header spells it
	After    string
}

// Moved reports whether a member is at another place.
func (c *Change) Moved() bool {
	return c.Kind == Changed && c.Old.Offset != c.New.Offset && !c.Value()
}

// Value reports whether it is a value that changed: of an enumerator or a macro.
func (c *Change) Value() bool { t := c.Line().Type; return t == "enumerator" || t == "macro" }

// Retyped reports whether a member is of another type, and not just in other words.
func (c *Change) Retyped() bool {
	if c.Kind != Changed || c.Value() {
		return false
	}
	if c.Old.Size != c.New.Size {
		return true
	}
	f, g := c.Old.Func(), c.New.Func()
	if f != nil && g != nil {
		ps, result := c.Params()
		for _, p := range ps {
			if p.Kind != Respelled {
				return true
			}
		}
		return result != nil || f.Variadic != g.Variadic
	}
	return c.Old.Type != c.New.Type && !sameShape(c.Old, c.New)
}

func sameShape(o, n *Line) bool {
	return o.typ != nil && n.typ != nil && model.SameShape(o.typ, n.typ)
}

// otherWords reports whether two members are the same but for names.
func otherWords(o, n *Line) bool {
	if o.Func() != nil && n.Func() != nil && (o.shape != nil || sameShape(o, n)) {
		return !(&Change{Changed, o, n}).Retyped()
	}
	return sameShape(o, n)
}

// Params lists the differences in the parameters of a function, in the order of
// the new ones, then those that are gone; result is that of what it returns.
// Parameters belong together by name; of those that are left, by place and type.
func (c *Change) Params() (list []*Param, result *Param) {
	if c.Old == nil || c.New == nil {
		return nil, nil
	}
	f, g := c.Old.Func(), c.New.Func()
	if f == nil || g == nil {
		return nil, nil
	}
	equal := func(a, b *model.Type) bool {
		return c.Old.shape.spell(a) == c.New.shape.spell(b) || model.SameShape(a, b)
	}
	if !equal(f.Result, g.Result) {
		result = &Param{Kind: Changed, Before: f.Result.String(), After: g.Result.String()}
	}
	partner := partners(f.Params, g.Params, equal)
	last := -1
	taken := map[int]bool{}
	for j, n := range g.Params {
		i, ok := partner[j]
		if !ok {
			list = append(list, &Param{Kind: Added, New: n, After: n.Type.String()})
			continue
		}
		taken[i] = true
		o := f.Params[i]
		p := &Param{Old: o, New: n, Before: o.Type.String(), After: n.Type.String()}
		switch {
		case i < last || !equal(o.Type, n.Type): // out of order it is another call, whatever the types
			p.Kind = Changed
		case o.Name != n.Name:
			p.Kind = Respelled
		}
		last = max(last, i)
		if p.Kind != 0 {
			list = append(list, p)
		}
	}
	for i, o := range f.Params {
		if !taken[i] {
			list = append(list, &Param{Kind: Removed, Old: o, Before: o.Type.String()})
		}
	}
	return list, result
}

// partners finds the old parameter of each new one.
func partners(old, new []*model.Param, equal func(a, b *model.Type) bool) map[int]int {
	of, taken := map[int]int{}, map[int]bool{}
	for j, n := range new {
		for i, o := range old {
			if o.Name == n.Name && n.Name != "" && !taken[i] {
				of[j], taken[i] = i, true
				break
			}
		}
	}
	for j, n := range new { // renamed: behind the same neighbour, and of the same type
		if _, ok := of[j]; ok {
			continue
		}
		i := 0
		if j > 0 {
			before, ok := of[j-1]
			if !ok {
				continue
			}
			i = before + 1
		}
		if i < len(old) && !taken[i] && equal(old[i].Type, n.Type) {
			of[j], taken[i] = i, true
		}
	}
	return of
}

// Reworded lists the functions of a table of which its header says something
// else than that of an older one: a meaning may change where a signature does not.
func Reworded(old, new *model.Record) (fs []*model.Field) {
	for _, f := range new.Fields {
		if was, _ := old.Field(f.Name); was != nil && was.Doc != "" && f.Doc != "" && was.Doc != f.Doc {
			fs = append(fs, f)
		}
	}
	return fs
}
