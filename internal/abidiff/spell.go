package abidiff

import (
	"weft/gen/lock"
	"weft/internal/release"
)

// Spelled is one table of this build, spelled out.
type Spelled struct {
	Schema string `json:"schema"` // weft.abi.table/1
	Known
	Types []Layout `json:"types"` // the table, then what it is made of
}

// SpelledSchema is the version of Spelled as JSON.
const SpelledSchema = "weft.abi.table/1"

// Layout is one type, or a header's limits.
type Layout struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name,omitempty"`
	Bytes   int64    `json:"bytes,omitempty"`
	Users   []string `json:"users,omitempty"`
	Members []Named  `json:"members"`
}

// Named is a member with its name.
type Named struct {
	Name string `json:"name"`
	Member
	says string
}

// Differs is false: nothing is compared.
func (s *Spelled) Differs() bool { return false }

// spell spells a table out.
func spell(t *table) (*Spelled, error) {
	all, err := release.All()
	if err != nil {
		return nil, err
	}
	s := &Spelled{Schema: SpelledSchema, Known: describe(t.Table, all)}
	shape := lock.ShapeOf(t.unit, t.Table)
	for _, x := range types(nil, shape.Lines, nil, shape) {
		l := Layout{Kind: x.Kind, Name: x.New, Bytes: x.Bytes.New, Users: x.Users}
		table := x.New == t.Record.Name
		if table {
			l.Kind = "table"
		}
		for _, c := range x.Changes {
			n := Named{Name: c.Member, Member: *c.New, says: c.Says}
			if table {
				n.Served = howServed(t.Family, t.Version, c.Member)
			}
			l.Members = append(l.Members, n)
		}
		s.Types = append(s.Types, l)
	}
	return s, nil
}
