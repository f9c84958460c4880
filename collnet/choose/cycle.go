package choose

// mostSearched is how many ranks may have other cables than two each for a ring to be looked for.
const mostSearched = 16

// cycle returns the ranks in the order of a ring of cables through all of them, the first such from rank 0 on; nil if
// there is none, or more ranks than are searched.
func (f Fabric) cycle() []int {
	if f.N < 3 {
		return nil
	}
	s := &search{Fabric: f, path: []int{0}, seen: make([]bool, f.N)}
	if f.N <= mostSearched {
		s.failed = make([]bool, f.N<<f.N)
	} else if !f.bare() {
		return nil
	}
	s.seen[0] = true
	if !s.from(0) {
		return nil
	}
	return s.path
}

// bare reports whether every rank has two cables: then a walk along them is all there is to search.
func (f Fabric) bare() bool {
	for a := range f.N {
		n := 0
		for b := range f.N {
			if a != b && f.joins(a, b) {
				n++
			}
		}
		if n != 2 {
			return false
		}
	}
	return true
}

type search struct {
	Fabric
	path   []int
	seen   []bool
	failed []bool // from where, with which ranks seen, there is no way
}

// from completes the path, which ends at a rank.
func (s *search) from(end int) bool {
	if len(s.path) == s.N {
		return s.joins(end, 0)
	}
	if s.failed != nil && s.failed[s.state(end)] {
		return false
	}
	for next := range s.N {
		if s.seen[next] || !s.joins(end, next) {
			continue
		}
		s.seen[next], s.path = true, append(s.path, next)
		if s.from(next) {
			return true
		}
		s.seen[next], s.path = false, s.path[:len(s.path)-1]
	}
	if s.failed != nil {
		s.failed[s.state(end)] = true
	}
	return false
}

func (s *search) state(end int) int {
	bits := 0
	for r, seen := range s.seen {
		if seen {
			bits |= 1 << r
		}
	}
	return end<<s.N | bits
}
