package plan

import (
	"fmt"
	"strings"

	"weft/gen/rules"
)

// note is a decision made without a rule. The same in neighbouring versions is
// told once.
type note struct {
	family, slot, what string
	lo, hi             int
}

// noted remembers a decision for review.
func (p *planner) noted(family string, version int, slot, what string) {
	for _, n := range p.noteList {
		if n.family == family && n.slot == slot && n.what == what && n.hi == version-1 {
			n.hi = version
			return
		}
	}
	p.noteList = append(p.noteList, &note{family, slot, what, version, version})
}

func (p *planner) tell() {
	for _, n := range p.noteList {
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%s %s %s: %s", n.family, rules.Versions(n.lo, n.hi), n.slot, strings.TrimSpace(n.what)))
	}
}
