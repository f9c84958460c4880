package conform

import (
	"slices"

	"weft/internal/host"
)

// Rule is one sentence of the contract and the script that checks it.
type Rule struct {
	ID    string // names the rule in reports; part.what
	Says  string // what the contract says, in our words
	Basis string // where it says so
	// From and To bound the table versions that the rule concerns; 0 is open.
	From, To int
	// Gate: once it has failed, the later rules of the table cannot be judged.
	Gate bool
	// Care: NCCL never does this, or forgives it; a plugin that fails is merely fragile.
	Care bool
	// Slow rules run only where Options.Slow asks for them.
	Slow  bool
	Check func(*Env)
}

// Applies tells whether the rule concerns a table version.
func (r *Rule) Applies(version int) bool {
	return version >= r.From && (r.To == 0 || version <= r.To)
}

const (
	basisDoc    = "plugin documentation"
	basisHeader = "table header"
	basisLoader = "NCCL's loader"
	basisProxy  = "NCCL's proxy threads"
	basisNets   = "NCCL's own networks"
	basisWeft   = "weft's own promise; NCCL does not do this"
)

// NetRules is the contract of a net table, in the order in which it is checked: gates first.
func NetRules() []*Rule {
	var gates, others []*Rule
	for _, part := range [][]*Rule{loadRules, propRules, connRules, dataRules, groupRules, recvRules, oversizeRules, memRules, closeRules, failRules, contextRules, eventRules, vdeviceRules} {
		for _, r := range part {
			if r.Gate {
				gates = append(gates, r)
			} else {
				others = append(others, r)
			}
		}
	}
	return append(gates, others...)
}

// CollRules is the contract of a collNet table.
func CollRules() []*Rule {
	return slices.Concat(collTableRules, collConnRules, collReduceRules, collWindowRules, collOrderRules, collFailRules)
}

// AllRules is every rule that there is, of every family.
func AllRules() []*Rule {
	all := append([]*Rule{ruleLoad, ruleTables}, NetRules()...)
	for _, f := range host.Families()[1:] {
		all = append(all, rulesOf(f)...)
	}
	return all
}
