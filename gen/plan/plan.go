// Package plan decides, slot by slot, how each versioned table is served by
// the one core: straight, through a derived shim, through a hand-written
// adapter, or not at all. It knows headers and rules, and writes no code.
package plan

import (
	"errors"
	"fmt"
	"strconv"

	"weft/gen/model"
	"weft/gen/rules"
)

// Plan is everything that is emitted.
type Plan struct {
	Unit     *model.Unit
	Name     string // of every table
	Cores    []*Core
	Tables   []*Table
	Chained  []*Chained           // tables of other libraries, which the core calls
	Cur      []*Cur               // aliases of the newest version of a type
	Calls    []*Call              // what hand-written adapters call
	Declared []*Declare           // prototypes that the plugin writes by hand
	Notes    []string             // decisions made without a rule, for review
	Witness  map[model.Family]int // the newest version that the C host calls by hand
}

// Declare is a prototype out of the rules.
type Declare struct{ C, Pos string }

// Family gives the core functions of one family.
func (p *Plan) Family(f model.Family) []*Core {
	var cs []*Core
	for _, c := range p.Cores {
		if c.Family == f {
			cs = append(cs, c)
		}
	}
	return cs
}

type planner struct {
	unit  *model.Unit
	fast  *model.Unit
	rules *rules.Set
	plan  *Plan
	cores map[string]*Core // by family and slot
	curs  map[string]*Cur
	sites []*site

	noteList []*note
	errs     []error
}

// Build plans every table in the unit. fast holds the prototypes of
// transport/fastpath. The error joins everything that is wrong, so that one
// run shows all rules that are missing.
func Build(unit, fast *model.Unit, set *rules.Set) (*Plan, error) {
	p := &planner{
		unit: unit, fast: fast, rules: set,
		plan:  &Plan{Unit: unit, Witness: map[model.Family]int{}},
		cores: map[string]*Core{}, curs: map[string]*Cur{},
	}
	for _, r := range set.Verb("name") {
		p.plan.Name = r.Use().Words[0]
	}
	for _, r := range set.Verb("declare") {
		p.plan.Declared = append(p.plan.Declared, &Declare{r.Use().C, r.Pos()})
	}
	for _, f := range model.Families {
		if newest := unit.Newest(f); newest != nil {
			p.coreOf(newest)
			p.plan.Witness[f] = newest.Version
			if v := p.number("witness", f); v > 0 {
				p.plan.Witness[f] = v
			}
		}
	}
	for _, t := range unit.Tables {
		if from := p.number("from", t.Family); from > 0 && t.Version >= from {
			p.table(t)
		}
	}
	p.chained()
	p.calls()
	p.conclude()
	if len(p.errs) == 0 { // else a missing header would make every rule of it "match nothing"
		p.errs = append(p.errs, set.Unused()...)
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	p.tell()
	return p.plan, nil
}

// number returns the version that a rule names for a family: the first that is
// exported (from), the newest that the host calls by hand (witness); 0: none.
func (p *planner) number(verb string, f model.Family) int {
	for _, r := range p.rules.Verb(verb) {
		if r.Family != string(f) {
			continue
		}
		v, err := strconv.Atoi(r.Use().Words[0])
		if err != nil || p.unit.Table(f, v) == nil {
			p.errorf("%s: %s: there is no table %s of version %q", r.Pos(), verb, f, r.Words[0])
		}
		return v
	}
	return 0
}

func (p *planner) errorf(format string, a ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, a...))
}

// slots returns the function members of a table.
func slots(t *model.Table) []*model.Field {
	var fs []*model.Field
	for _, f := range t.Record.Fields {
		if f.Type.IsFuncPtr() {
			fs = append(fs, f)
		}
	}
	return fs
}
