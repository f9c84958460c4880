package plan

import (
	"fmt"
	"strings"

	"weft/gen/model"
)

// Copy converts one version of a struct to or from the newest one.
type Copy struct {
	Name     string // of the C function
	Old, Cur *model.Type
	CurName  string      // ncclNetProperties_cur_t
	Lower    bool        // newest to old; else old to newest
	Selector *model.Type // of the parameter by which a union is selected, if one is
	On       string      // that parameter
	Steps    []*Step
}

// Step copies one field. Paths are C, relative to the structs.
type Step struct {
	Dst, Src string
	CFunc    string  // Src goes through it, or it gives the value where there is no Src
	Copy     *Copy   // nested struct
	Len      int64   // array: elements copied
	Clamp    string  // field of Dst that must not exceed Len
	Cases    []*Case // union
	On       string  // what selects among Cases
}

// Case is one member of a union.
type Case struct {
	Values []string
	Steps  []*Step
}

// copyOf plans the conversion between one version of a struct and the newest.
func (p *planner) copyOf(out *Table, s *Slot, old, cur *model.Type, lower bool) *Copy {
	stem, version, ok := split(old.Name)
	if !ok {
		p.missing(s.Pos, fmt.Sprintf("struct %s differs from %s, and its name has no version", old, cur))
		return &Copy{Name: "unversioned", Old: old, Cur: cur}
	}
	verb := "lift"
	if lower {
		verb = "lower"
	}
	name := fmt.Sprintf("%s_%s_v%d", verb, stem, version)
	for _, c := range out.Copies {
		if c.Name == name {
			return c
		}
	}
	c := &Copy{Name: name, Old: old, Cur: cur, CurName: p.cur(stem).Alias, Lower: lower}
	w := &copier{p: p, out: out, slot: s, stem: stem, version: version, copy: c}
	if old.Record.Union {
		c.Steps = w.union("", "", old.Record, cur.Record)
	} else {
		c.Steps = w.record("", "", old.Record, cur.Record)
	}
	out.Copies = append(out.Copies, c)
	return c
}

type copier struct {
	p       *planner
	out     *Table
	slot    *Slot
	stem    string
	version int
	copy    *Copy
}

// record plans the fields of a struct; at and curAt are the paths of the two
// records, with a dot at the end, or empty.
func (w *copier) record(at, curAt string, old, cur *model.Record) []*Step {
	var steps []*Step
	for _, f := range old.Fields {
		steps = append(steps, w.field(at, curAt, f, cur)...)
	}
	return steps
}

func (w *copier) field(at, curAt string, f *model.Field, cur *model.Record) []*Step {
	rules, path := w.p.rules, at+f.Name
	if f.Name == "" {
		var g *model.Field
		for _, h := range cur.Fields {
			if h.Name == "" {
				g = h
			}
		}
		if g == nil || !f.Type.Record.Union {
			w.missing(f, "an anonymous member that the newest version lacks")
			return nil
		}
		return w.union(at, curAt, f.Type.Record, g.Type.Record)
	}
	if r := rules.Field("supply", w.stem, w.version, path); r != nil && w.out.called {
		return []*Step{{Dst: path, CFunc: r.Words[0]}}
	}
	if rules.Field("lose", w.stem, w.version, path) != nil {
		return nil
	}
	if unset := rules.Field("unset", w.stem, w.version, path); unset != nil && !w.copy.Lower {
		return nil
	}
	name := f.Name
	if r := rules.Field("relabel", w.stem, w.version, path); r != nil {
		name = r.Words[0]
	}
	g, _ := cur.Field(name)
	if g == nil {
		w.missing(f, fmt.Sprintf("%s has no such field", w.copy.Cur.Name),
			fmt.Sprintf("relabel %s v%d %s NEWNAME", w.stem, w.version, path), fmt.Sprintf("lose %s v%d %s -- WHY", w.stem, w.version, path))
		return nil
	}
	src, dst := path, curAt+name
	from, to := f.Type, g.Type
	if w.copy.Lower {
		src, dst, from, to = dst, src, to, from
	}
	convert := "convert"
	if w.out.called {
		convert = "revert"
	}
	if r := rules.Field(convert, w.stem, w.version, path); r != nil {
		return []*Step{{Dst: dst, Src: src, CFunc: r.Words[0]}}
	}
	if w.out.called && from.Kind == to.Kind && from.Size > to.Size && rules.Field("narrow", w.stem, w.version, path) != nil {
		return []*Step{{Dst: dst, Src: src}}
	}
	switch {
	case from.Kind == model.Struct && to.Kind == model.Struct && f.Type.Name == "": // C has no name to cast with
		return w.record(path+".", curAt+name+".", f.Type.Record, g.Type.Record)
	case same(from, to) && from.Kind == model.Array:
		return []*Step{{Dst: dst, Src: src, Len: from.Len}}
	case same(from, to) && (from.Record == nil || from.Record == to.Record), widens(from, to):
		return []*Step{{Dst: dst, Src: src}}
	case from.Kind == model.Array && to.Kind == model.Array && same(from.Elem, to.Elem):
		return w.array(f, at, curAt, dst, src, from, to)
	case from.Kind == model.Struct && to.Kind == model.Struct:
		return []*Step{{Dst: dst, Src: src, Copy: w.p.copyOf(w.out, w.slot, f.Type, g.Type, w.copy.Lower)}}
	}
	write := []string{fmt.Sprintf("%s %s v%d %s CFUNC", convert, w.stem, w.version, path)}
	if w.out.called {
		write = append(write, fmt.Sprintf("narrow %s v%d %s -- WHY", w.stem, w.version, path))
	}
	w.missing(f, fmt.Sprintf("it is %s here and %s in %s (%s)", f.Type, g.Type, w.copy.Cur.Name, g.Pos), write...)
	return nil
}

// array copies as much as fits; a field that counts the elements is cut too.
func (w *copier) array(f *model.Field, at, curAt, dst, src string, from, to *model.Type) []*Step {
	st := &Step{Dst: dst, Src: src, Len: min(from.Len, to.Len)}
	for _, r := range w.p.rules.Verb("counted") {
		if r.Stem == w.stem && r.Param == at+f.Name {
			st.Clamp = r.Use().Words[0]
		}
	}
	if st.Clamp == "" {
		w.missing(f, fmt.Sprintf("%d elements here and %d in %s", f.Type.Len, from.Len+to.Len-f.Type.Len, w.copy.Cur.Name),
			fmt.Sprintf("counted %s %s COUNTFIELD", w.stem, at+f.Name))
	}
	return []*Step{st}
}

// union copies only the member that the selector names.
func (w *copier) union(at, curAt string, old, cur *model.Record) []*Step {
	st := new(Step)
	for _, m := range old.Fields {
		c := &Case{}
		for _, r := range w.p.rules.Verb("select") {
			if r.Stem != w.stem || r.Words[1] != m.Name {
				continue
			}
			r.Use()
			w.selector(st, r.Param, r.Pos())
			if !w.enumerator(r.Words[0]) {
				w.p.errorf("%s: select: no header has an enumerator %s", r.Pos(), r.Words[0])
			}
			c.Values = append(c.Values, r.Words[0])
		}
		if w.p.rules.Field("lose", w.stem, w.version, at+m.Name) != nil {
			continue
		}
		if len(c.Values) == 0 {
			if on, value := w.byName(m.Name); value != "" {
				w.p.noted(string(w.out.Family), w.out.Version, w.slot.Name, fmt.Sprintf("member %s of %s counts where %s is %s, by its name", m.Name, w.stem, on, value))
				w.selector(st, on, "")
				c.Values = []string{value}
			}
		}
		if len(c.Values) == 0 {
			w.missing(m, "it is a member of a union, and nothing says when it counts", fmt.Sprintf("select %s SELECTOR VALUE %s", w.stem, m.Name))
			continue
		}
		c.Steps = w.field(at, curAt, m, cur)
		st.Cases = append(st.Cases, c)
	}
	for _, r := range w.p.rules.Verb("select") {
		if g, _ := cur.Field(r.Words[1]); r.Stem == w.stem && g != nil {
			r.Use() // a member that only newer versions have
		}
	}
	if w.copy.Lower && !w.out.called {
		w.p.missing(w.slot.Pos, fmt.Sprintf("the core would have to write the union of %s", w.copy.Old.Name))
	}
	return []*Step{st}
}

// byName finds the enumerator that is called as a member is, behind what the
// enumerators of the struct's other members begin with.
func (w *copier) byName(member string) (on, value string) {
	prefix := ""
	for _, r := range w.p.rules.Verb("select") {
		if r.Stem != w.stem || strings.HasPrefix(r.Param, "@") {
			continue
		}
		if on == "" {
			on, prefix = r.Param, r.Words[0]
		}
		for !strings.HasPrefix(r.Words[0], prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	if on == "" || prefix == "" {
		return "", ""
	}
	if value = prefix + strings.ToUpper(member[:1]) + member[1:]; !w.enumerator(value) {
		return "", ""
	}
	return on, value
}

func (w *copier) selector(st *Step, name, pos string) {
	on := "from->" + name
	if param, is := strings.CutPrefix(name, "@"); is {
		on = "selector"
		q := w.slot.Func.Param(param)
		if q == nil {
			w.p.errorf("%s: select: %s has no parameter %q", pos, w.slot.Name, param)
			return
		}
		w.copy.Selector = q.Type
		w.copy.On = param
	}
	st.On = on
}

func (w *copier) enumerator(name string) bool {
	for _, e := range w.p.unit.Enums {
		for _, v := range e.Values {
			if v.Name == name {
				return true
			}
		}
	}
	return false
}

func (w *copier) missing(f *model.Field, what string, write ...string) {
	w.p.missing(f.Pos, fmt.Sprintf("field %q of %s: %s", f.Name, w.copy.Old.Name, what), write...)
}
