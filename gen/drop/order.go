package drop

import (
	"path"
	"strings"
)

// order returns the headers to include so that each stands after what it
// needs, whether or not it says so, and the names that no header defines.
func (s *source) order() (headers, missing []string) {
	visited, asked := map[string]bool{}, map[string]bool{}
	var visit func(p string)
	visit = func(p string) {
		if visited[p] {
			return
		}
		visited[p] = true
		inside := s.included(p) // p comes first: it knows where they belong
		own := map[string]bool{}
		for _, q := range inside {
			for _, name := range defined(s.texts[q]) {
				own[name] = true
			}
		}
		for _, q := range inside {
			for _, name := range usedName.FindAllString(s.texts[q], -1) {
				if own[name] {
					continue
				}
				if d := s.definer(name, p); d != "" {
					visit(d)
				} else if !asked[name] {
					asked[name] = true
					missing = append(missing, name)
				}
			}
		}
		headers = append(headers, p)
	}
	for _, p := range s.tables {
		visit(p)
	}
	return headers, missing
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
