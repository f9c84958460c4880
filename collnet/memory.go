package collnet

// memory is what an operation reads or writes: one buffer, or several that count as one behind the other.
type memory []part

type part struct {
	address uintptr
	off     int // of it in the whole
	size    int
	handle  uintptr
	region  *region // nil: it is empty
}

// copyTo and copyFrom copy all of it to and from one place.
func (m memory) copyTo(to uintptr) {
	for _, p := range m {
		move(to+uintptr(p.off), p.address, p.size)
	}
}

func (m memory) copyFrom(from uintptr) {
	for _, p := range m {
		move(p.address, from+uintptr(p.off), p.size)
	}
}

// overlaps reports whether two memories have bytes in common.
func (m memory) overlaps(o memory) bool {
	for _, a := range m {
		for _, b := range o {
			if a.address < b.address+uintptr(b.size) && b.address < a.address+uintptr(a.size) {
				return true
			}
		}
	}
	return false
}

func (m memory) uses(r *region) bool {
	for _, p := range m {
		if p.region == r {
			return true
		}
	}
	return false
}
