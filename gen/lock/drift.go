package lock

// Drift is a difference that copies of one header are known to have: a rule
// `drift STEM VERSIONS FIELD TYPE HOW -- WHY`. Types are written without
// spaces ("const_char*").
type Drift struct {
	Stem   string // type without its version
	Lo, Hi int
	Field  string
	Type   string // what the other copies have
	How    string // how the field is read so that both are served
	Pos    string // of the rule
}

// The ways to serve both copies.
const (
	// LowByte: the field holds small numbers, and one byte, the first on a
	// little-endian machine, is what is read.
	LowByte = "low-byte"
	// SameBits: the types differ in name or sign only.
	SameBits = "same-bits"
)

// Covers reports whether the rule allows a change.
func (d *Drift) Covers(c *Change) bool {
	if c.Kind != Changed || Stem(c.Old.Struct) != d.Stem || c.Old.Version < d.Lo || c.Old.Version > d.Hi ||
		c.Old.Field != d.Field || compact(c.New.Type) != compact(d.Type) || c.Old.Offset != c.New.Offset {
		return false
	}
	switch d.How {
	case LowByte:
		return c.Old.Size == 1
	case SameBits:
		return c.Old.Size == c.New.Size
	}
	return false
}

// Covered reports whether any rule allows a change.
func Covered(c *Change, ds []Drift) bool {
	for i := range ds {
		if ds[i].Covers(c) {
			return true
		}
	}
	return false
}

// compact spells a type without spaces.
func compact(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] != ' ' && s[i] != '_' {
			b = append(b, s[i])
		}
	}
	return string(b)
}
