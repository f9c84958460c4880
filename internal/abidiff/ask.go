package abidiff

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"weft/gen/model"
	"weft/internal/release"
)

// side is one of what is compared: a table, a release or headers.
type side struct {
	text    string
	table   *table
	release *release.Release
	unit    *unit
}

func (s *side) String() string {
	switch {
	case s.table != nil:
		return fmt.Sprintf("%s v%d", s.table.Family, s.table.Version)
	case s.release != nil:
		return s.release.String()
	}
	return s.text
}

var (
	releaseName = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)
	versionName = regexp.MustCompile(`^[vV]?(\d{1,4})$`)
	tableName   = regexp.MustCompile(`^(ncclNet|ncclCollNet|ncclProfiler|ncclTuner)(Plugin)?_v(\d{1,4})(_t)?$`)
)

// Ask answers a call of weft abi. An error means that it cannot be carried out
// as given, and says what to name instead.
func Ask(args []string) (Report, error) {
	if len(args) == 0 {
		return list("")
	}
	if f, ok := family(args[0]); ok && len(args) == 1 {
		return list(f)
	}
	sides, err := operands(args)
	if err != nil {
		return nil, err
	}
	switch len(sides) {
	case 1:
		return sides[0].tell()
	case 2:
		return compare(sides[0], sides[1])
	}
	return nil, fmt.Errorf("%d things to compare, %s: name two at most", len(sides), strings.Join(args, " "))
}

// tell answers a call that names one thing.
func (s *side) tell() (Report, error) {
	switch {
	case s.table != nil:
		return spell(s.table)
	case s.release != nil:
		return looks(s.release), nil
	}
	ours, err := known()
	if err != nil {
		return nil, err
	}
	return compareUnits(&unit{Unit: ours, name: "this build", ours: true}, s.unit), nil
}

func compare(a, b *side) (Report, error) {
	switch {
	case a.table != nil && b.table != nil:
		if a.table.Family != b.table.Family {
			return nil, fmt.Errorf("%v and %v are of different families, whose functions have nothing in common: name two versions of one, as in \"%s v%d v%d\"",
				a, b, a.table.Family, a.table.Version, nextTo(a.table))
		}
		all, err := release.All()
		if err != nil {
			return nil, err
		}
		d := &Diff{Old: a.String(), New: b.String(), Pairs: []Pair{compareTables(a.table, b.table)}}
		d.Taken = &Takers{describe(a.table.Table, all).Taken, describe(b.table.Table, all).Taken}
		return d.conclude(), nil
	case a.release != nil && b.release != nil:
		return compareReleases(a.release, b.release)
	case a.unit != nil && b.unit != nil:
		return compareUnits(a.unit, b.unit), nil
	case a.table != nil && b.unit != nil:
		t, err := b.unit.counterpart(a.table)
		if err != nil {
			return nil, err
		}
		d := &Diff{Old: a.String(), New: b.String(), Pairs: []Pair{compareTables(a.table, t)}, Notes: b.unit.notes}
		return d.conclude(), nil
	case a.unit != nil && b.table != nil:
		t, err := a.unit.counterpart(b.table)
		if err != nil {
			return nil, err
		}
		d := &Diff{Old: a.String(), New: b.String(), Pairs: []Pair{compareTables(t, b.table)}, Notes: a.unit.notes}
		return d.conclude(), nil
	}
	return nil, fmt.Errorf("%v and %v cannot be compared: a release has no header of its own here; name two releases, two versions, or two headers", a, b)
}

// nextTo is a version beside that of a table.
func nextTo(t *table) int {
	all := versions(t.unit, t.Family)
	for i, v := range all {
		if v == t.Version && i+1 < len(all) {
			return all[i+1]
		} else if v == t.Version && i > 0 {
			return all[i-1]
		}
	}
	return t.Version
}

// counterpart is the table of the headers that is compared with one of this build:
// the same version, or the newest.
func (u *unit) counterpart(t *table) (*table, error) {
	if same := u.Table(t.Family, t.Version); same != nil {
		return u.table(same), nil
	}
	if newest := u.Newest(t.Family); newest != nil {
		return u.table(newest), nil
	}
	return nil, fmt.Errorf("%s declares no table of %s: name a header that does, or two headers", u.name, t.Family)
}

// operands reads what is compared with what.
func operands(args []string) (sides []*side, err error) {
	for i := 0; i < len(args); {
		f, ok := family(args[i])
		if !ok {
			s, err := operand(args[i])
			if err != nil {
				return nil, err
			}
			sides = append(sides, s)
			i++
			continue
		}
		first := i + 1
		for i = first; i < len(args) && versionName.MatchString(args[i]); i++ {
			s, err := version(f, versionName.FindStringSubmatch(args[i])[1])
			if err != nil {
				return nil, err
			}
			sides = append(sides, s)
		}
		if i == first {
			what := "nothing"
			if i < len(args) {
				what = strconv.Quote(args[i])
			}
			return nil, fmt.Errorf("behind %s stands %s: name a version, as in \"%s v8\"", f, what, f)
		}
	}
	return sides, nil
}

func operand(arg string) (*side, error) {
	if m := tableName.FindStringSubmatch(arg); m != nil {
		for _, f := range model.Families {
			if v, err := strconv.Atoi(m[3]); err == nil && f.TypeName(v) == m[1]+"_v"+m[3]+"_t" {
				return version(f, m[3])
			}
		}
	}
	if releaseName.MatchString(arg) {
		r, err := release.Find(arg)
		if err != nil {
			return nil, err
		}
		return &side{text: arg, release: r}, nil
	}
	if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(arg, "/.") {
		return nil, fmt.Errorf("%q is no family (%s), no release (as 2.22.3) and no file", arg, families())
	}
	u, err := open(arg)
	if err != nil {
		return nil, err
	}
	return &side{text: arg, unit: u}, nil
}

func version(f model.Family, number string) (*side, error) {
	v, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s version %q: %w", f, number, err)
	}
	t, err := find(f, v)
	if err != nil {
		return nil, err
	}
	return &side{table: t}, nil
}

func family(arg string) (model.Family, bool) {
	for _, f := range model.Families {
		if strings.EqualFold(arg, string(f)) {
			return f, true
		}
	}
	return "", false
}

func families() string {
	var all []string
	for _, f := range model.Families {
		all = append(all, string(f))
	}
	return strings.Join(all, ", ")
}
