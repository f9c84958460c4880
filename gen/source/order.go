package source

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"weft/gen/lock"
	"weft/gen/model"
)

// plan is the order in which headers are included so that each stands after
// what it needs, whether or not it says so.
type plan struct {
	s        *Headers
	ours     *model.Unit
	headers  []string
	made     map[string]string // headers that stand in for what no header defines
	visited  map[string]bool
	took     map[string][]string // what was taken from our own headers, by header
	inferred map[string]string   // declarations of types that no header has, by analogy
	guessed  []string            // the same in words
}

// madeDir holds the stand-ins, one for each type or macro.
const madeDir = "weft"

func (s *Headers) order(ours *model.Unit) *plan {
	p := &plan{s: s, ours: ours, made: map[string]string{}, visited: map[string]bool{}, took: map[string][]string{}, inferred: map[string]string{}}
	for _, t := range append(slices.Clone(s.tables), s.leaders...) {
		p.visit(t)
	}
	return p
}

func (p *plan) visit(header string) {
	if p.visited[header] {
		return
	}
	p.visited[header] = true
	inside := p.s.included(header) // the header comes first: it knows where they belong
	own := map[string]bool{}
	for _, q := range inside {
		for _, name := range defined(p.s.texts[q]) {
			own[name] = true
		}
	}
	for _, q := range inside {
		for _, name := range usedName.FindAllString(p.s.texts[q], -1) {
			if !own[name] {
				p.need(name, header)
			}
		}
	}
	p.headers = append(p.headers, header)
}

// need puts the header that defines a name before its user, or else our own
// declaration of it.
func (p *plan) need(name, user string) {
	if d := p.s.definer(name, user); d != "" {
		p.visit(d)
		return
	}
	made := path.Join(madeDir, name+".h")
	if p.visited[made] {
		return
	}
	p.visited[made] = true
	var b strings.Builder
	into := p.made
	b.WriteString("#pragma once\n")
	if t := p.ours.Typedef(name); t != nil {
		for _, n := range needs(p.ours, t) {
			p.need(n, user)
		}
		Declare(&b, t, silent)
		p.took[t.Pos.File] = append(p.took[t.Pos.File], name)
	} else if m := p.ours.Macro(name); m != nil {
		fmt.Fprintf(&b, "#define %s %s\n", name, m.Text)
		p.took[m.Pos.File] = append(p.took[m.Pos.File], name)
	} else if t := newestAlias(p.ours, name); t != nil {
		into = p.inferred
		p.need(t.Name, user)
		fmt.Fprintf(&b, "typedef %s %s;\n", t.Name, name)
		p.guessed = append(p.guessed, fmt.Sprintf("%s: %s is not declared there; it is taken to be %s, as versions before it were: compare its net_device.h", user, name, t.Name))
	} else {
		return // if it matters, the parser says so
	}
	into[made] = b.String()
	p.headers = append(p.headers, made)
}

// newestAlias finds the newest version that we hold of a type that is older
// than the one named and merely another name for one before it.
func newestAlias(u *model.Unit, name string) *model.Typedef {
	var best *model.Typedef
	for _, t := range u.Typedefs {
		if t.Name != name && lock.Stem(t.Name) == lock.Stem(name) && (best == nil || lock.Version(t.Name) > lock.Version(best.Name)) {
			best = t
		}
	}
	if best == nil || lock.Version(best.Name) >= lock.Version(name) || best.Type.Record == nil || best.Type.Record.Name == best.Name {
		return nil
	}
	return best
}

// reads reports whether a header of the source is read.
func (p *plan) reads(header string) bool {
	return slices.ContainsFunc(p.headers, func(h string) bool { return slices.Contains(p.s.included(h), header) })
}

// notes says what the source lacked.
func (p *plan) notes() []string {
	var list []string
	for _, h := range slices.Sorted(maps.Keys(p.took)) {
		names := slices.Sorted(slices.Values(p.took[h]))
		list = append(list, fmt.Sprintf("not in the source, taken from headers/%s: %s", h, strings.Join(names, ", ")))
	}
	return append(list, p.guessed...)
}

// included lists p and all that it includes, as far as it is in the source.
func (s *Headers) included(p string) []string {
	seen := map[string]bool{}
	var list []string
	var add func(string)
	add = func(p string) {
		if seen[p] || s.banned[p] != nil {
			return
		}
		seen[p] = true
		list = append(list, p)
		for _, q := range s.includes(p) {
			add(q)
		}
	}
	add(p)
	return list
}

// find returns the header that an #include means by a path: that one, or the
// longest ending of it that exists, for NCCL is built with several -I.
func (s *Headers) find(name string) string {
	for rest := name; ; {
		if _, ok := s.texts[rest]; ok {
			return rest
		}
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return ""
		}
		rest = rest[i+1:]
	}
}

// definer returns the header that defines a name: of several, the one nearest
// to who needs it.
func (s *Headers) definer(name, user string) string {
	best, distance := "", 0
	for _, p := range s.defines[name] {
		if s.banned[p] != nil {
			continue
		}
		if d := far(path.Dir(p), path.Dir(user)); best == "" || d < distance {
			best, distance = p, d
		}
	}
	return best
}

// far counts the steps from one folder to another.
func far(a, b string) int {
	x, y := split(a), split(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	return len(x) + len(y)
}

func split(dir string) []string {
	if dir == "." {
		return nil
	}
	return strings.Split(dir, "/")
}
