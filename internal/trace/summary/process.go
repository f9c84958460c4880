package summary

import (
	"fmt"

	"weft/internal/trace"
	"weft/internal/trace/model"
)

// Process is one whose file was read.
type Process struct {
	Name         string  `json:"name"`
	File         string  `json:"file"`
	Communicator int     `json:"communicator"` // the first that has it, of Report's; -1: none
	Rank         int32   `json:"rank"`         // in that
	Ranks        []int32 `json:"ranks"`        // in the communicators it has
	Events       int     `json:"events"`
	Overwritten  uint64  `json:"overwritten"`
	Refused      uint64  `json:"refused"`
	Torn         uint64  `json:"torn"`
	Unread       uint64  `json:"unread_chunks"`
}

func (r *Report) processes(t *model.Trace) {
	for _, p := range t.Processes {
		q := Process{Name: p.Name(), File: p.Path, Communicator: -1, Rank: -1, Events: len(p.Events), Ranks: []int32{}}
		q.Overwritten, q.Refused, q.Torn, q.Unread = p.Loss.Overwritten, p.Loss.Refused, p.Loss.Torn, p.Loss.Unread
		for _, c := range p.Comms {
			q.Ranks = append(q.Ranks, c.Rank)
		}
		r.Processes = append(r.Processes, q)
	}
	for i, c := range t.Communicators {
		for _, m := range c.Comms {
			if q := &r.Processes[m.Process.Index]; q.Communicator < 0 {
				q.Communicator, q.Rank = i, m.Rank
			}
		}
	}
}

// Label is the process as people call it: by its rank in its first communicator.
func (q Process) Label() string {
	if q.Communicator < 0 {
		return q.Name
	}
	return fmt.Sprintf("rank %d (%s)", q.Rank, q.Name)
}

// Lost says what the process's file lacks.
func (q Process) Lost() string {
	return trace.Loss{Overwritten: q.Overwritten, Refused: q.Refused, Torn: q.Torn, Unread: q.Unread}.String()
}

// Missing is how many records and chunks the file lacks, of every kind together.
func (q Process) Missing() uint64 { return q.Overwritten + q.Refused + q.Torn + q.Unread }
