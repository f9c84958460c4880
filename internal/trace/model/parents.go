package model

import "weft/transport/record/format"

// OpPID is the process that a ProxyOp is of: another where NCCL uses a GPU's proxy
// for others (PXN).
func (e *Event) OpPID() uint64 { return e.A & 0xffffffff }

// Channel of a ProxyOp, KernelCh or KernelPhase.
func (e *Event) Channel() uint8 {
	if e.Type == format.ProxyOp {
		return uint8(e.A >> 32)
	}
	return uint8(e.A)
}

// Sends reports whether a ProxyOp is a sender's.
func (e *Event) Sends() bool { return e.A>>40&1 == 1 }

// parents finds what each event belongs to. With PXN a proxy works for another
// process of its machine, whose events its parents are.
func (t *Trace) parents() {
	type key struct {
		machine *Machine
		pid     uint64
	}
	byPID := map[key][]*Process{}
	for _, p := range t.Processes {
		k := key{p.Machine, p.Header.PID}
		byPID[k] = append(byPID[k], p)
	}
	gone := 0
	for _, p := range t.Processes {
		for _, e := range p.Events {
			if e.Parent == 0 || e.level() == 0 {
				continue
			}
			of := []*Process{p}
			if e.Type == format.ProxyOp && e.OpPID() != p.Header.PID {
				of = byPID[key{p.Machine, e.OpPID()}]
			}
			if !e.under(of) {
				gone++
			}
		}
	}
	if gone > 0 {
		t.note("%d events have a parent that was not recorded, or was overwritten", gone)
	}
}

// under joins the event to its parent in one of the processes; of several that
// have such an event, as containers whose process IDs are the same, to none.
func (e *Event) under(of []*Process) bool {
	for _, p := range of {
		up := p.events[e.Parent]
		if up == nil || up.level() == 0 || up.level() >= e.level() || up.Time > e.Time {
			continue
		}
		if e.Up != nil {
			e.Up = nil
			return false
		}
		e.Up = up
	}
	if e.Up == nil {
		return false
	}
	e.Up.Down = append(e.Up.Down, e)
	return true
}
