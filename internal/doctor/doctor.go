// Package doctor says what is wrong with a machine for NCCL with weft, from its files and a process's environment alone: it loads
// nothing and changes nothing.
package doctor

// Rule is one thing that can be wrong.
type Rule struct {
	ID    string // part.what
	What  string // what it looks for
	check func(*Machine) []Finding
}

// Finding is one thing that is wrong.
type Finding struct {
	Rule        string // its ID
	What        string
	Evidence    string // where it was seen
	Consequence string
	Remedy      string // the command that mends it, or what to do
}

// Rules are all there are, in the order in which their findings are told.
func Rules() []Rule {
	return []Rule{
		{"plugin.none", "NCCL_NET_PLUGIN=none, left over", ruleNone},
		{"plugin.missing", "weft is where NCCL looks for it", ruleMissing},
		{"plugin.other", "another plugin where NCCL looks for weft", ruleOther},
		{"plugin.link", "the links beside the library", ruleLink},
		{"plugin.broken", "a file of that name that cannot be loaded", ruleBroken},
		{"net.name", "NCCL_NET names another network", ruleNet},
		{"conf.path", "LD_LIBRARY_PATH in a file of NCCL's", rulePath},
		{"conf.line", "a line of NCCL's files that it reads otherwise than it looks", ruleLine},
	}
}

// Examine applies every rule.
func (m *Machine) Examine() []Finding {
	var all []Finding
	for _, r := range Rules() {
		for _, f := range r.check(m) {
			f.Rule = r.ID
			all = append(all, f)
		}
	}
	return all
}
