package plan

import (
	"regexp"
	"strconv"
	"strings"

	"weft/gen/model"
)

// Cur is the alias by which hand-written code names the newest version of a
// type: ncclNetProperties_cur_t.
type Cur struct {
	Stem    string // ncclNetProperties
	Alias   string // ncclNetProperties_cur_t
	Name    string // ncclNetProperties_v12_t
	Version int
	Type    *model.Type
	Header  string // that declares it
}

var versionedName = regexp.MustCompile(`^(\w+)_v(\d+)_t$`)

// split takes a versioned name apart; ok is false for any other name.
func split(name string) (stem string, version int, ok bool) {
	m := versionedName.FindStringSubmatch(name)
	if m == nil {
		return "", 0, false
	}
	v, err := strconv.Atoi(m[2])
	return m[1], v, err == nil
}

// Split takes a versioned type name apart.
func Split(name string) (stem string, version int, ok bool) { return split(name) }

// cur returns the newest version of a stem, and remembers that it is needed.
func (p *planner) cur(stem string) *Cur {
	if c := p.curs[stem]; c != nil {
		return c
	}
	var best *Cur
	consider := func(name string, t *model.Type, file string) {
		if s, v, ok := split(name); ok && s == stem && (best == nil || v > best.Version) {
			best = &Cur{Stem: s, Alias: s + "_cur_t", Name: name, Version: v, Type: t, Header: file}
		}
	}
	for _, td := range p.unit.Typedefs {
		t := *td.Type
		t.Name = td.Name
		consider(td.Name, &t, td.Pos.File)
	}
	for _, r := range p.unit.Records {
		kind := model.Struct
		if r.Union {
			kind = model.Union
		}
		consider(r.Name, &model.Type{Kind: kind, Name: r.Name, Size: r.Size, Align: r.Align, Record: r}, r.Pos.File)
	}
	if best != nil {
		p.curs[stem] = best
		p.plan.Cur = append(p.plan.Cur, best)
		if best.Type.Record != nil {
			for _, f := range best.Type.Record.Fields {
				p.newest(f.Type) // what it contains is named by hand-written code too
			}
		}
	}
	return best
}

// newest replaces the versioned type that t names, or points to, by its newest
// version.
func (p *planner) newest(t *model.Type) *model.Type {
	if stem, _, ok := split(t.Name); ok {
		if c := p.cur(stem); c != nil {
			n := *c.Type
			n.Const = t.Const
			return &n
		}
		return t
	}
	if t.Name == "" && t.Elem != nil && (t.Kind == model.Pointer || t.Kind == model.Array) {
		n := *t
		n.Elem = p.newest(t.Elem)
		return &n
	}
	return t
}

// curSpelling spells t with _cur_t instead of a version.
func (p *planner) curSpelling(t *model.Type) string {
	s := t.String()
	base := strings.TrimRight(s, "*")
	if stem, _, ok := split(strings.TrimPrefix(base, "const ")); ok {
		if c := p.cur(stem); c != nil {
			return c.Alias + s[len(base):]
		}
	}
	return s
}

// curPointer reads "ncclNetCommConfig_cur_t*"; nil when it is no such type.
func (p *planner) curPointer(s string) *model.Type {
	base := strings.TrimRight(s, "*")
	stem, isCur := strings.CutSuffix(base, "_cur_t")
	if !isCur || base == s {
		return nil
	}
	c := p.cur(stem)
	if c == nil {
		return nil
	}
	t := c.Type
	for range len(s) - len(base) {
		t = &model.Type{Kind: model.Pointer, Elem: t, Size: 8, Align: 8}
	}
	return t
}
