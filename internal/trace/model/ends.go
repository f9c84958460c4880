package model

import "weft/transport/record/format"

// ends says when each event was over. A collective is over with the last of its
// proxy operations and kernels: its own stop means that it was enqueued.
func (t *Trace) ends() {
	deepest := 0
	for _, l := range level {
		deepest = max(deepest, l)
	}
	byLevel := make([][]*Event, deepest+1)
	for _, p := range t.Processes {
		for _, e := range p.Events {
			byLevel[e.level()] = append(byLevel[e.level()], e)
		}
	}
	for _, events := range byLevel { // parents before children
		for _, e := range events {
			switch e.Type {
			case format.GroupAPI, format.CollAPI, format.P2pAPI:
				e.Captured = e.Flags&1 == 1
			}
			e.Captured = e.Captured || e.Up != nil && e.Up.Captured
		}
	}
	for l := deepest; l >= 0; l-- { // children before parents
		for _, e := range byLevel[l] {
			e.end()
		}
	}
}

func (e *Event) end() {
	if !e.OnGPU {
		e.From, e.To = e.Time, max(e.Stop, e.Time)
		if e.Stop == Never {
			e.Open, e.To = true, max(e.Process.Last, e.Time)
		}
	}
	switch e.Type {
	case format.Coll, format.P2p, format.CeColl:
	default:
		return
	}
	// One event of a graph stands for every time that it ran.
	if e.Captured {
		e.Launch = true
		return
	}
	to, open, some := uint64(0), false, false
	for _, d := range e.Down {
		switch d.Type {
		case format.ProxyOp, format.KernelCh, format.CeBatch, format.CeSync:
			some = true
			open = open || d.Open
			to = max(to, d.To)
		}
	}
	if !some {
		e.Launch = true
		return
	}
	e.To, e.Open = max(to, e.From), open
}
