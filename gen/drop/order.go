package drop

import (
	"fmt"
	"path"
	"strings"

	"weft/gen/model"
)

// plan is the order in which headers are included so that each stands after
// what it needs, whether or not it says so.
type plan struct {
	s       *source
	ours    *model.Unit
	headers []string
	made    map[string]string // headers that stand in for what no header defines
	visited map[string]bool
}

// madeDir holds the stand-ins, one for each type or macro.
const madeDir = "weft"

func (s *source) order(ours *model.Unit) *plan {
	p := &plan{s: s, ours: ours, made: map[string]string{}, visited: map[string]bool{}}
	for _, t := range s.tables {
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
	b.WriteString("#pragma once\n")
	if t := p.ours.Typedef(name); t != nil {
		for _, n := range needs(p.ours, t) {
			p.need(n, user)
		}
		declare(&b, t, silent)
	} else if m := p.ours.Macro(name); m != nil {
		fmt.Fprintf(&b, "#define %s %s\n", name, m.Text)
	} else {
		return // if it matters, the parser says so
	}
	p.made[made] = b.String()
	p.headers = append(p.headers, made)
}

// included lists p and all that it includes, as far as it is in the source.
func (s *source) included(p string) []string {
	seen := map[string]bool{}
	var list []string
	var add func(string)
	add = func(p string) {
		if seen[p] || s.banned[p] {
			return
		}
		seen[p] = true
		list = append(list, p)
		for _, m := range inclusion.FindAllStringSubmatch(s.texts[p], -1) {
			if q := s.find(path.Join(path.Dir(p), m[1])); q != "" {
				add(q)
			}
		}
	}
	add(p)
	return list
}

// find returns the header that an #include means by a path: that one, or the
// longest ending of it that exists, for NCCL is built with several -I.
func (s *source) find(name string) string {
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
func (s *source) definer(name, user string) string {
	best, distance := "", 0
	for _, p := range s.defines[name] {
		if s.banned[p] {
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
