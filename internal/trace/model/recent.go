package model

import (
	"slices"
	"time"
)

// KeepLast leaves of a trace what was not over so long before all processes of its
// machine were last seen: what a job does now, however long it has run.
func (t *Trace) KeepLast(d time.Duration) {
	last := map[*Machine]uint64{}
	for _, p := range t.Processes {
		if at := last[p.Machine]; at == 0 || p.Seen() < at {
			last[p.Machine] = p.Seen()
		}
	}
	from := func(p *Process) uint64 {
		at := last[p.Machine]
		return at - min(at, uint64(d))
	}
	for _, p := range t.Processes {
		for _, e := range p.Ends {
			e.Messages = slices.DeleteFunc(e.Messages, func(m *Message) bool { return m.To < from(p) })
		}
		p.Events = slices.DeleteFunc(p.Events, func(e *Event) bool { return e.To < from(p) })
	}
	for _, c := range t.Connections {
		c.Pairs = slices.DeleteFunc(c.Pairs, func(x Pair) bool { return x.Receive.To < from(x.Receive.End.Process) })
	}
}
