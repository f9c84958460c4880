// Package ras asks the RAS service of a running NCCL (2.24 on) how the job is, and
// holds its answer to what the job's files say.
package ras

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Answer is what RAS says of a job.
type Answer struct {
	Address       string    `json:"address"`
	Version       string    `json:"version"`       // of NCCL
	Communicators []uint64  `json:"communicators"` // their ids
	Partly        bool      `json:"partly"`        // Communicators has those only with which something is wrong
	Findings      []Finding `json:"findings"`
	Timeouts      int       `json:"timeouts"` // within RAS, while it asked the processes
}

// Kinds of a Finding: what is wrong with those whom it names.
const (
	Dead   = "dead"         // their process cannot be reached any more
	Silent = "no answer"    // their process has not answered
	Absent = "not a member" // their process answers, and has left the communicator, or not joined it
	Failed = "failed"       // they report an error
	State  = "other state"  // they begin, end or abort, others do not
	Behind = "behind"       // they have launched fewer operations
)

// Finding is what is wrong with ranks of a communicator, or with processes.
type Finding struct {
	Kind         string `json:"kind"`
	Communicator uint64 `json:"communicator"` // its id; 0: it is about processes
	Why          string `json:"why,omitempty"`
	Most         uint64 `json:"most,omitempty"` // operations that others have launched
	Who          []Who  `json:"who"`            // none: RAS does not name them
}

// Who is a rank or a process.
type Who struct {
	Rank     int32  `json:"rank"` // -1: not known
	Host     string `json:"host,omitempty"`
	PID      int64  `json:"pid"`      // 0: not known
	Launched uint64 `json:"launched"` // operations, of one that is behind
}

func (w Who) String() string {
	var parts []string
	if w.Rank >= 0 {
		parts = append(parts, fmt.Sprintf("rank %d", w.Rank))
	}
	if w.PID > 0 {
		parts = append(parts, fmt.Sprintf("process %d on %s", w.PID, cmp.Or(w.Host, "?")))
	}
	return cmp.Or(strings.Join(parts, ", "), "somebody")
}

// mostNamed bounds a line.
const mostNamed = 8

// Text is the finding as a line.
func (f Finding) Text() string {
	var who []string
	for _, w := range f.Who[:min(len(f.Who), mostNamed)] {
		s := w.String()
		if f.Kind == Behind {
			s += fmt.Sprintf(" (%d of %d)", w.Launched, f.Most)
		}
		who = append(who, s)
	}
	if more := len(f.Who) - len(who); more > 0 {
		who = append(who, fmt.Sprintf("%d more", more))
	}
	s := f.Kind
	if f.Communicator != 0 {
		s += fmt.Sprintf(" in %#x", f.Communicator)
	}
	if f.Why != "" {
		s += ", " + f.Why
	}
	return s + ": " + cmp.Or(strings.Join(who, "; "), "some, whom it does not name")
}

// add names somebody in the finding of that kind, or begins it.
func (a *Answer) add(f Finding, who ...Who) {
	i := slices.IndexFunc(a.Findings, func(g Finding) bool { return f.is(g) && g.Most == f.Most })
	if i < 0 {
		i = len(a.Findings)
		f.Who = []Who{}
		a.Findings = append(a.Findings, f)
	}
	a.Findings[i].Who = append(a.Findings[i].Who, who...)
}

func (f Finding) is(g Finding) bool {
	return f.Kind == g.Kind && f.Communicator == g.Communicator && f.Why == g.Why
}

// stands keeps of those who are behind whoever has launched nothing since an answer
// before: in a job that goes on, some are behind at any moment.
func (a *Answer) stands(before *Answer) {
	a.Findings = slices.DeleteFunc(a.Findings, func(f Finding) bool {
		if f.Kind != Behind {
			return false
		}
		i := slices.IndexFunc(before.Findings, f.is)
		return i < 0 || len(f.Who) == 0 && before.Findings[i].Most != f.Most
	})
	for n := range a.Findings {
		f := &a.Findings[n]
		if f.Kind != Behind || len(f.Who) == 0 {
			continue
		}
		was := map[Who]bool{}
		for _, w := range before.Findings[slices.IndexFunc(before.Findings, f.is)].Who {
			was[w] = true
		}
		f.Who = slices.DeleteFunc(f.Who, func(w Who) bool { return !was[w] })
		if len(f.Who) == 0 {
			f.Kind = ""
		}
	}
	a.Findings = slices.DeleteFunc(a.Findings, func(f Finding) bool { return f.Kind == "" })
}

func (a *Answer) behind() bool {
	return slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Kind == Behind })
}
