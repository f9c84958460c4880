package abidiff

import (
	"slices"

	"weft/gen/model"
	"weft/internal/release"
)

// List is which tables this build knows and which releases take them.
type List struct {
	Schema   string  `json:"schema"` // weft.abi.list/1
	Tables   []Known `json:"tables"`
	Releases []Range `json:"releases"`
}

// ListSchema is the version of List as JSON.
const ListSchema = "weft.abi.list/1"

// Known is a table of this build.
type Known struct {
	Family    string `json:"family"`
	Version   int    `json:"version"`
	Symbol    string `json:"symbol"`
	Functions int    `json:"functions"`
	Bytes     int64  `json:"bytes"`
	Asked     Span   `json:"asked"` // releases that look it up
	Taken     Span   `json:"taken"` // releases that take it of weft
}

// Span is the first and the last of releases; both empty: none.
type Span struct {
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

// Takers are the releases that take either of two tables.
type Takers struct {
	Old Span `json:"old"`
	New Span `json:"new"`
}

func (s *Span) add(r *release.Release) {
	if s.First == "" {
		s.First = r.Release.Release
	}
	s.Last = r.Release.Release
}

// Range is releases, one after the other, that look up the same.
type Range struct {
	Span
	Finds map[string][]int `json:"lookups"` // versions by family, in the order of lookup
}

// Differs is false: nothing is compared.
func (l *List) Differs() bool { return false }

// list lists the tables of a family, or with "" of all.
func list(only model.Family) (*List, error) {
	u, err := known()
	if err != nil {
		return nil, err
	}
	all, err := release.All()
	if err != nil {
		return nil, err
	}
	l := &List{Schema: ListSchema}
	for _, t := range u.Tables {
		if only == "" || t.Family == only {
			l.Tables = append(l.Tables, describe(t, all))
		}
	}
	for _, r := range all {
		x := Range{Finds: map[string][]int{}}
		for _, f := range model.Families {
			if vs := lookedUp(r, f); len(vs) > 0 && (only == "" || f == only) {
				x.Finds[string(f)] = vs
			}
		}
		if n := len(l.Releases); n == 0 || !same(l.Releases[n-1].Finds, x.Finds) {
			l.Releases = append(l.Releases, x)
		}
		l.Releases[len(l.Releases)-1].add(r)
	}
	return l, nil
}

func same(a, b map[string][]int) bool {
	for _, f := range model.Families {
		if !slices.Equal(a[string(f)], b[string(f)]) {
			return false
		}
	}
	return true
}

func describe(t *model.Table, all []*release.Release) Known {
	k := Known{Family: string(t.Family), Version: t.Version, Symbol: t.Symbol, Bytes: t.Record.Size}
	for _, f := range t.Record.Fields {
		if f.Type.IsFuncPtr() {
			k.Functions++
		}
	}
	for _, r := range all {
		if slices.Contains(lookedUp(r, t.Family), t.Version) {
			k.Asked.add(r)
		}
		if finds(r, t.Family).table == t.Version {
			k.Taken.add(r)
		}
	}
	return k
}
