package abidiff

import "weft/gen/model"

// service is how weft serves a function of its tables in a range of versions.
type service struct {
	family, function string
	lo, hi           int
	how              string // "direct", "shim: int size checked", "NULL: why"
}

// howServed is empty for a function that weft does not export.
func howServed(f model.Family, version int, function string) string {
	for _, s := range served {
		if s.family == string(f) && s.function == function && s.lo <= version && version <= s.hi {
			return s.how
		}
	}
	return ""
}

// exports reports whether weft has that table.
func exports(f model.Family, version int) bool {
	for _, s := range served {
		if s.family == string(f) && s.lo <= version && version <= s.hi {
			return true
		}
	}
	return false
}
