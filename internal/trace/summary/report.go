// Package summary tells from a trace what operations and links took, which ranks
// were late and which links slow, each with the evidence.
package summary

import (
	"weft/internal/trace/clock"
	"weft/internal/trace/model"
	"weft/internal/trace/ras"
)

// Schema is the version of the report's JSON. Times are in nanoseconds.
const Schema = 1

// Report is what a trace says, as JSON too.
type Report struct {
	Schema        int            `json:"schema"`
	Findings      []Finding      `json:"findings"`
	Communicators []Communicator `json:"communicators"`
	Slowest       []Collective   `json:"slowest"` // collectives
	Links         []Link         `json:"links"`
	Pairs         []Pair         `json:"pairs"`
	Processes     []Process      `json:"processes"`
	Clocks        []Clock        `json:"clocks"`
	Notes         []string       `json:"notes"`

	RAS *ras.Section `json:"ras,omitempty"` // where it was asked

	remarks    int // of Notes: the trace's
	stragglers []*model.Process
}

// Finding is something that is slower than its like.
type Finding struct {
	Kind     string `json:"kind"` // straggler, slow-link, slow-process
	What     string `json:"what"`
	Evidence string `json:"evidence"`
}

// Clock is how a machine's stands to the first one's.
type Clock struct {
	Host   string `json:"host"`
	Basis  string `json:"basis"`
	Offset int64  `json:"offset"`
	Bound  uint64 `json:"bound"` // of the error; 0 with realtime clocks, where it is not known
}

// Known reports whether the clock's error is.
func (c Clock) Known() bool { return c.Basis != string(clock.Wall) }

// New judges a trace.
func New(t *model.Trace) *Report {
	r := &Report{Schema: Schema, Findings: []Finding{}, Notes: append([]string{}, t.Notes...), remarks: len(t.Notes)}
	for _, m := range t.Machines {
		r.Clocks = append(r.Clocks, Clock{m.Host, string(m.Clock.Basis), m.Clock.Add, m.Clock.Bound})
	}
	r.processes(t)
	events := byComm(t)
	for _, c := range t.Communicators {
		r.Communicators = append(r.Communicators, r.communicator(c, events))
	}
	r.slowest(t, events)
	r.pairs(r.links(t))
	return r
}

// byComm has each communicator's events that the report looks at.
func byComm(t *model.Trace) map[*model.Comm][]*model.Event {
	all := map[*model.Comm][]*model.Event{}
	for _, p := range t.Processes {
		for _, e := range p.Events {
			if e.In != nil {
				all[e.In] = append(all[e.In], e)
			}
		}
	}
	return all
}

// Remarks are the notes on what was recorded.
func (r *Report) Remarks() []string { return r.Notes[:r.remarks] }

// Files is what the report says, to be held to RAS's answer.
func (r *Report) Files() ras.Files {
	return ras.Files{Accused: r.stragglers, Else: len(r.Findings) > len(r.stragglers), Times: true}
}

// Doubts are the notes on what may be slow, but cannot be told.
func (r *Report) Doubts() []string { return r.Notes[r.remarks:] }

func (r *Report) find(kind, what, evidence string) {
	r.Findings = append(r.Findings, Finding{kind, what, evidence})
}
