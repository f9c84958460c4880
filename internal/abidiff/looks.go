package abidiff

import (
	"weft/gen/model"
	"weft/internal/release"
)

// Looks is what one release looks up, and what it takes of weft.
type Looks struct {
	Schema  string           `json:"schema"` // weft.abi.release/1
	Release string           `json:"release"`
	Date    string           `json:"date"`
	Lookups []Found          `json:"lookups"`
	Vars    []string         `json:"variables"` // that name plugins
	Limits  map[string]int64 `json:"limits"`
}

// Found is what a release looks up of one family.
type Found struct {
	Family string `json:"family"`
	Finds
}

// LooksSchema is the version of Looks as JSON.
const LooksSchema = "weft.abi.release/1"

// Differs is false: nothing is compared.
func (l *Looks) Differs() bool { return false }

func looks(r *release.Release) *Looks {
	l := &Looks{Schema: LooksSchema, Release: r.Release.Release, Date: r.Date, Vars: append([]string{}, r.Env...), Limits: r.Limits}
	for _, f := range model.Families {
		l.Lookups = append(l.Lookups, Found{string(f), finds(r, f)})
	}
	return l
}
