// Package doctor says what is wrong with a machine for NCCL with weft, from its files and a process's environment alone: it loads
// nothing and changes nothing.
package doctor

import (
	"fmt"
	"slices"
	"time"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
)

// Severity is what a finding does to a job.
type Severity string

// From the worst on.
const (
	Breaks Severity = "breaks" // a job fails, or does not use weft or RDMA
	Slows  Severity = "slows"  // a job runs, and not as fast as the machine could
	Advice Severity = "advice" // worth knowing; it changes no exit status
)

// Rule is one thing that can be wrong.
type Rule struct {
	Code        string // WEFT-017: stable, never given to another rule
	Topic       string // the part of the machine
	Severity    Severity
	Title       string                 // what is wrong
	Symptom     string                 // what a user sees of it: an error's text, or how a job behaves
	Consequence string                 // what follows from it
	Remedy      string                 // the command that mends it, or what to do, where the finding has none of its own
	check       func(*Exam) []Finding  // of one machine, or
	across      func([]Host) []Finding // of all hosts
}

// Finding is one thing that is wrong.
type Finding struct {
	Code        string   `json:"code" doc:"the rule's, WEFT-070; stable"`
	Severity    Severity `json:"severity" doc:"breaks, slows or advice"`
	Title       string   `json:"title" doc:"what is wrong"`
	Subject     string   `json:"subject,omitempty" doc:"the device, file or variable, where one is meant"`
	Evidence    string   `json:"evidence" doc:"what was seen, and where"`
	Consequence string   `json:"consequence" doc:"what follows from it"`
	Remedy      string   `json:"remedy" doc:"the command that mends it, or what to do"`

	Set map[string]string `json:"set,omitempty" doc:"variables that mend it; an empty one is as if it were not set"`
}

// seen is a finding by its evidence; the rule has the rest.
func seen(subject, format string, a ...any) Finding {
	return Finding{Subject: subject, Evidence: fmt.Sprintf(format, a...)}
}

// mend gives it a remedy of its own.
func (f Finding) mend(format string, a ...any) Finding {
	f.Remedy = fmt.Sprintf(format, a...)
	return f
}

// one is a list of it.
func (f Finding) one() []Finding { return []Finding{f} }

// Rules are all there are, by code.
func Rules() []Rule {
	return slices.SortedFunc(slices.Values(slices.Concat(
		pluginRules, confRules, knobRules, libraryRules, deviceRules, portRules, twinRules, gidRules, pcieRules, mtuRules, limitRules, memoryRules, gpuRules, numaRules,
		interfaceRules, subnetRules, firewallRules, bondRules, lossRules, errorRules, tcpRules, kernelRules, acrossRules,
	)), func(a, b Rule) int { return compareCodes(a.Code, b.Code) })
}

// ofMachines is how many rules are about one machine.
func ofMachines() int { return len(Rules()) - len(acrossRules) }

// Exam is a machine under the rules.
type Exam struct {
	*machine.Machine
	all   []*sight     // what each release finds
	knobs *knob.Values // as the newest release has them
}

// Examine looks at the machine; look is the time between two looks at what counts, on a live machine.
func Examine(m *machine.Machine, look time.Duration) (*Exam, error) {
	x := &Exam{Machine: m}
	err := m.Start()
	if err != nil {
		return nil, err
	}
	if x.all, err = x.lookUp(); err != nil {
		return nil, err
	}
	x.knobs = knob.Parse(m.Settings(x.newest().r.Code))
	m.LookAgain(look)
	return x, nil
}

// Findings applies every rule, in the order of their codes.
func (x *Exam) Findings() []Finding {
	all := []Finding{}
	for _, r := range Rules() {
		if r.check == nil {
			continue
		}
		for _, f := range r.check(x) {
			f.Code, f.Severity = r.Code, r.Severity
			f.Title = r.Title
			if f.Consequence == "" {
				f.Consequence = r.Consequence
			}
			if f.Remedy == "" {
				f.Remedy = r.Remedy
			}
			all = append(all, f)
		}
	}
	return all
}

// set is a variable as the newest release of NCCL has it.
func (x *Exam) set(name string) machine.Setting { return x.Setting(name, x.newest().r.Code) }
