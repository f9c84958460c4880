package plan

import "weft/gen/model"

// Call is a function through which hand-written adapters reach the core. Its
// parameters are those of the rule; whatever a later header adds gets its
// default, so that adapters need no edit.
type Call struct {
	Name   string // weft_call_net_connect
	Core   *Core
	Params []*CoreParam
	Args   []string // in the core's order: a parameter's name, or C
}

func (p *planner) calls() {
	for _, r := range p.rules.Verb("call") {
		core := p.cores[r.Family+"."+r.Slot]
		if core == nil || core.Served == Null {
			p.errorf("%s: call: the newest %s table has no %s to call", r.Pos(), r.Family, r.Slot)
			continue
		}
		c := &Call{Name: "weft_call_" + string(model.Family(r.Use().Family)) + "_" + r.Slot, Core: core}
		wanted := map[string]bool{}
		for _, w := range r.Words {
			q := core.Param(w)
			if q == nil {
				p.errorf("%s: call: %s takes no %q", r.Pos(), core.CFunc, w)
				continue
			}
			wanted[w] = true
			c.Params = append(c.Params, q)
		}
		for _, q := range core.Params {
			switch {
			case wanted[q.Name]:
				c.Args = append(c.Args, q.Name)
			case q.Default != "":
				c.Args = append(c.Args, q.Default)
			default:
				c.Args = append(c.Args, zero(q))
			}
		}
		p.plan.Calls = append(p.plan.Calls, c)
	}
}
