package model

import (
	"math"

	"weft/transport/record/format"
)

// GPU is one in a process: that of a communicator.
type GPU struct {
	Comm *Comm
	// Add makes a time of the GPU one of the host. It is the least that a record
	// was later than what it tells of, so it may be too much by Slack: a kernel
	// cannot begin before its collective does.
	Add     int64
	Slack   uint64
	Bounded bool // Slack is known
	Crossed uint64
}

// gpus finds how the clocks of the process's GPUs stand to the host's, and gives
// kernels their times.
func (p *Process) gpus() {
	type bounds struct {
		most, least int64
		bounded     bool
	}
	seen := map[*Comm]*bounds{}
	var order []*Comm
	for _, e := range p.Events {
		if !e.hasTimer() {
			continue
		}
		b := seen[e.In]
		if b == nil {
			b = &bounds{most: math.MaxInt64, least: math.MinInt64}
			seen[e.In] = b
			order = append(order, e.In)
		}
		b.most = min(b.most, int64(e.Time-e.B))
		if at, timer, ok := e.timerStop(); ok {
			b.most = min(b.most, int64(at-timer))
		}
		if e.Up != nil && e.Up.Process == p && (e.Up.Type == format.Coll || e.Up.Type == format.P2p) {
			b.bounded = true
			b.least = max(b.least, int64(e.Up.Time-e.B))
		}
	}
	for _, c := range order {
		b := seen[c]
		g := GPU{Comm: c, Add: b.most, Bounded: b.bounded}
		if b.bounded && b.most >= b.least {
			g.Slack = uint64(b.most - b.least)
		} else if b.bounded {
			g.Crossed = uint64(b.least - b.most)
		}
		p.GPU = append(p.GPU, g)
	}
	for _, e := range p.Events {
		if !e.hasTimer() {
			continue
		}
		add := seen[e.In].most
		_, timer, ok := e.timerStop()
		if !ok || timer < e.B {
			continue // one that never ended, as the host saw it
		}
		if from, to := e.B+uint64(add), timer+uint64(add); from <= to {
			e.OnGPU, e.From, e.To = true, from, to
		}
	}
}

// hasTimer reports whether the event tells when it began on the GPU.
func (e *Event) hasTimer() bool {
	return (e.Type == format.KernelCh || e.Type == format.KernelPhase) && e.B != 0
}

// GPUTime is what the event took by the GPU's own timer, ns; false: the host has not said.
func (e *Event) GPUTime() (ns uint64, ok bool) {
	_, stop, ok := e.timerStop()
	if !e.hasTimer() || !ok || stop < e.B {
		return 0, false
	}
	return stop - e.B, true
}

// timerStop is when the event ended on the GPU, and when the host heard of it.
func (e *Event) timerStop() (at, timer uint64, ok bool) {
	for i := len(e.States) - 1; i >= 0; i-- {
		if s := e.States[i]; s.A != 0 {
			return s.Time, s.A, true
		}
	}
	return 0, 0, false
}
