package drop

import (
	"fmt"

	"weft/gen/lock"
	"weft/gen/model"
	"weft/gen/source"
)

// Verdict is what is said of one type of the source.
type Verdict struct {
	Type    string
	Status  string // New, Identical, Changed, Drift, Older
	Changes []*lock.Change
	Pos     model.Pos
}

// The verdicts.
const (
	New       = "new"
	Identical = "identical"
	Changed   = "changed"
	Drifted   = "known drift"
	Older     = "not served"
	Unused    = "unused"
)

// report is the comparison of a source with what we hold.
type report struct {
	verdicts []Verdict
	broken   []*lock.Change
	notes    []string
	grown    []growth
	macros   []*model.Macro // new ones that all versions share
}

// compare compares every versioned type of theirs, and what all versions
// share, with ours.
func compare(ours, theirs *model.Unit, drifts []lock.Drift, limits []limit) *report {
	rep := &report{}
	have := byType(lock.Of(ours))
	got := lock.Of(theirs)
	names, lines := group(got)
	importing := importable(ours, theirs)
	for _, name := range names {
		if !model.FamilyType.MatchString(name) {
			continue
		}
		v := Verdict{Type: name, Status: Identical, Pos: lines[name][0].Pos}
		switch old := have[name]; {
		case old == nil && importing[name]:
			v.Status = New
		case old == nil && model.TableType.MatchString(name):
			v.Status = Older
		case old == nil:
			v.Status = Unused
		default:
			for _, c := range differences(ours, theirs, name, old, lines[name]) {
				v.Changes = append(v.Changes, c)
				switch {
				case c.Kind == lock.Respelled:
				case lock.Covered(c, drifts):
					if v.Status == Identical {
						v.Status = Drifted
					}
				default:
					v.Status = Changed
					rep.broken = append(rep.broken, c)
				}
			}
		}
		rep.verdicts = append(rep.verdicts, v)
	}
	rep.enums(ours, theirs)
	rep.limits(ours, theirs, limits)
	rep.comments(ours, theirs)
	return rep
}

// comments notes functions of a new table of which the source now says
// something else: a meaning may change where a signature does not.
func (rep *report) comments(ours, theirs *model.Unit) {
	for _, t := range newTables(ours, theirs) {
		before := theirs.Table(t.Family, t.Version-1)
		if before == nil {
			continue
		}
		for _, f := range lock.Reworded(before.Record, t.Record) {
			rep.notes = append(rep.notes, fmt.Sprintf("%v: the comment of %s.%s is not that of version %d: read both", f.Pos, t.Record.Name, f.Name, before.Version))
		}
	}
}

// differences compares one type. An alias equals what it stands for.
func differences(ours, theirs *model.Unit, name string, old, new []lock.Line) []*lock.Change {
	same := model.SameShape(ours.Typedef(name).Type, theirs.Typedef(name).Type)
	var cs []*lock.Change
	for _, c := range lock.Diff(old, new) {
		if !same || c.Kind == lock.Respelled {
			cs = append(cs, c)
		}
	}
	return cs
}

func byType(ls []lock.Line) map[string][]lock.Line {
	_, m := group(ls)
	return m
}

func group(ls []lock.Line) (names []string, m map[string][]lock.Line) {
	m = map[string][]lock.Line{}
	for _, l := range ls {
		if m[l.Struct] == nil {
			names = append(names, l.Struct)
		}
		m[l.Struct] = append(m[l.Struct], l)
	}
	return names, m
}

// importable names the types to import: tables newer than those we hold, and
// what they need that we do not have.
func importable(ours, theirs *model.Unit) map[string]bool {
	in := map[string]bool{}
	for _, t := range newTables(ours, theirs) {
		for _, td := range source.Closure(theirs, t.Record.Name) {
			if ours.Typedef(td.Name) == nil {
				in[td.Name] = true
			}
		}
	}
	return in
}

func newTables(ours, theirs *model.Unit) []*model.Table {
	var ts []*model.Table
	for _, t := range theirs.Tables {
		if newest := ours.Newest(t.Family); newest == nil || t.Version > newest.Version {
			ts = append(ts, t)
		}
	}
	return ts
}
