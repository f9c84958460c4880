// Package summary tells from a trace what operations and links took, which ranks
// were late and which links slow, each with the evidence.
package summary

import (
	"weft/internal/trace/model"
)

// Schema is the version of the report's JSON. Times are in nanoseconds.
const Schema = 1

// Report is what a trace says, as JSON too.
type Report struct {
	Schema        int            `json:"schema"`
	Findings      []Finding      `json:"findings"`
	Communicators []Communicator `json:"communicators"`
	Links         []Link         `json:"links"`
	Processes     []Process      `json:"processes"`
	Clocks        []Clock        `json:"clocks"`
	Notes         []string       `json:"notes"`
}

// Finding is something that is slower than its like.
type Finding struct {
	Kind     string `json:"kind"` // straggler, slow-link
	What     string `json:"what"`
	Evidence string `json:"evidence"`
}

// Process is one whose file was read.
type Process struct {
	Name        string  `json:"name"`
	File        string  `json:"file"`
	Ranks       []int32 `json:"ranks"` // in the communicators it has
	Events      int     `json:"events"`
	Overwritten uint64  `json:"overwritten"`
	Refused     uint64  `json:"refused"`
	Torn        uint64  `json:"torn"`
	Unread      uint64  `json:"unread_chunks"`
}

// Clock is how a machine's stands to the first one's.
type Clock struct {
	Host   string `json:"host"`
	Basis  string `json:"basis"`
	Offset int64  `json:"offset"`
	Bound  uint64 `json:"bound"` // of the error; 0 with realtime clocks, where it is not known
}

// New judges a trace.
func New(t *model.Trace) *Report {
	r := &Report{Schema: Schema, Findings: []Finding{}, Notes: append([]string{}, t.Notes...)}
	for _, m := range t.Machines {
		r.Clocks = append(r.Clocks, Clock{m.Host, string(m.Clock.Basis), m.Clock.Add, m.Clock.Bound})
	}
	for _, p := range t.Processes {
		q := Process{Name: p.Name(), File: p.Path, Events: len(p.Events), Ranks: []int32{}}
		q.Overwritten, q.Refused, q.Torn, q.Unread = p.Loss.Overwritten, p.Loss.Refused, p.Loss.Torn, p.Loss.Unread
		for _, c := range p.Comms {
			q.Ranks = append(q.Ranks, c.Rank)
		}
		r.Processes = append(r.Processes, q)
	}
	events := byComm(t)
	for _, c := range t.Communicators {
		r.Communicators = append(r.Communicators, r.communicator(c, events))
	}
	r.links(t)
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

func (r *Report) find(kind, what, evidence string) {
	r.Findings = append(r.Findings, Finding{kind, what, evidence})
}
