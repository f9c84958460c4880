package plan

import (
	"fmt"
	"strings"

	"weft/gen/model"
	"weft/gen/rules"
)

// site is one thing that only a rule can decide. The same thing in several
// versions is reported once, at its first place, with the range that the rule
// must cover.
type site struct {
	table  *model.Table
	slot   string
	pos    model.Pos
	what   string
	rules  []string // %s is the range of versions
	lo, hi int
}

// current remembers which slot is being planned, for missing.
func (p *planner) current(t *model.Table, f *model.Field) {
	p.sites = append(p.sites, &site{table: t, slot: f.Name})
}

// missing reports that the slot being planned cannot be derived, and which
// rules would decide it.
func (p *planner) missing(pos model.Pos, what string, write ...string) {
	at := p.sites[len(p.sites)-1]
	v := at.table.Version
	for _, s := range p.sites {
		if s.what == what && s.slot == at.slot && s.table.Family == at.table.Family {
			s.lo, s.hi = min(s.lo, v), max(s.hi, v)
			return
		}
	}
	p.sites[len(p.sites)-1] = &site{table: at.table, slot: at.slot, pos: pos, what: what, rules: write, lo: v, hi: v}
	p.sites = append(p.sites, at)
}

// conclude turns what is missing into errors.
func (p *planner) conclude() {
	for _, s := range p.sites {
		if s.what == "" {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s.%s: %s", s.pos, s.table.Record.Name, s.slot, s.what)
		for i, r := range s.rules {
			lead := "; write in gen/rules: "
			if i > 0 {
				lead = "  or: "
			}
			if strings.Contains(r, "%s") {
				r = fmt.Sprintf(r, rules.Versions(s.lo, s.hi))
			}
			b.WriteString(lead + r)
		}
		p.errorf("%s", b.String())
	}
}
