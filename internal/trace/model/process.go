package model

import (
	"cmp"
	"slices"

	"weft/internal/trace"
	"weft/transport/record/format"
)

// add takes a file's records: starts first, for another thread may have stopped
// what one has started.
func (t *Trace) add(f *trace.File) {
	p := &Process{
		Index: len(t.Processes), Machine: t.machine(f.Header), Path: f.Path, Header: f.Header, Loss: f.Loss,
		First: Never, events: map[uint64]*Event{}, text: f.Text,
	}
	t.Processes = append(t.Processes, p)
	for i, th := range f.Threads {
		p.Threads = append(p.Threads, Thread{TID: th.TID, Name: th.Name, Records: len(th.Records)})
		for _, r := range th.Records {
			p.First, p.Last = min(p.First, r.Time), max(p.Last, r.Time)
			if r.Kind == format.Start {
				e := &Event{Record: r.Record, Process: p, Thread: i, Stop: Never}
				p.Events = append(p.Events, e)
				p.events[r.ID] = e
			}
		}
	}
	links := newLinks(p)
	var parts []format.Record
	for i, th := range f.Threads {
		for _, r := range th.Records {
			switch r.Kind {
			case format.Stop, format.State:
				p.change(r.Record)
			case format.Comm:
				p.comm(r.Record)
			case format.CommEnd:
				p.Comms = append(p.Comms, &Comm{Process: p, Number: r.Comm, Rank: -1, From: r.Time, To: r.Time})
			case format.Link, format.Message, format.MessageEnd:
				links.take(i, r.Record)
			case format.Said:
				parts = append(parts, r.Record)
			case format.RunDelay:
				p.Delays = append(p.Delays, RunDelay{r.Time - min(r.Time, r.A), r.Time, min(r.B, r.A)})
			}
		}
	}
	links.finish()
	p.Said = said(parts)
	slices.SortStableFunc(p.Delays, func(a, b RunDelay) int { return cmp.Compare(a.From, b.From) })
	slices.SortStableFunc(p.Events, func(a, b *Event) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) })
	for _, e := range p.Events {
		slices.SortStableFunc(e.States, func(a, b State) int { return cmp.Compare(a.Time, b.Time) })
	}
	if p.First == Never {
		p.First = f.Header.Mono
		p.Last = p.First
	}
	for _, n := range f.Notes {
		t.note("%s: %s", p.Name(), n)
	}
	if p.orphan > 0 {
		t.note("%s: %d stops and states of events whose start was overwritten", p.Name(), p.orphan)
	}
}

func (p *Process) change(r format.Record) {
	e := p.events[r.ID]
	if e == nil {
		p.orphan++
		return
	}
	if r.Kind == format.State {
		e.States = append(e.States, State{Time: r.Time, Number: r.Flags, A: r.A, B: r.B, C: r.C})
		return
	}
	// Of a handle that is stopped twice the first stop counts.
	e.Stop = min(e.Stop, r.Time)
}

// level is where a type stands in the hierarchy: a parent's is lower, so that what
// a file claims cannot become a circle. Types that later releases bring have no
// parent.
var level = [format.Types]int{
	format.GroupAPI: 1, format.CollAPI: 2, format.P2pAPI: 2, format.Group: 3,
	format.Coll: 4, format.P2p: 4, format.CeColl: 4, format.KernelLaunch: 4,
	format.ProxyOp: 5, format.KernelCh: 5, format.CeSync: 5, format.CeBatch: 5,
	format.ProxyStep: 6, format.KernelPhase: 6, format.NetPlugin: 7,
}

// Level of the event's type; 0: it has none.
func (e *Event) level() int {
	if int(e.Type) < len(level) {
		return level[e.Type]
	}
	return 0
}
