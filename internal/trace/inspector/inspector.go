// Package inspector writes what NVIDIA's inspector, a profiler for NCCL, writes of
// a job, from what weft's recorder has written of it.
package inspector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// MinBytes is NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES where nobody sets it.
const MinBytes = 8192

// Options are what the inspector's variables choose.
type Options struct {
	MinBytes  uint64 // operations with less are left out
	AnyTiming bool   // operations that no GPU has timed are written too
	Verbose   bool   // with the moments of each operation
}

// Process is one with its operations, in the order in which they were done.
type Process struct {
	Of         *model.Process
	Operations []*Operation
	Left       Left

	verbose bool
}

// Left counts operations that are left out, by the reason.
type Left struct{ Small, Untimed, Unfinished, Captured int }

// Text says how many and why; "": none.
func (l Left) Text() string {
	var parts []string
	for _, p := range []struct {
		n   int
		why string
	}{
		{l.Small, "with fewer bytes"}, {l.Untimed, "that no GPU has timed"},
		{l.Unfinished, "whose kernels are not all there, or not done"}, {l.Captured, "captured into graphs"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.why))
		}
	}
	return strings.Join(parts, ", ")
}

// New takes each process's operations out of a trace.
func New(t *model.Trace, o Options) []*Process {
	var all []*Process
	for _, p := range t.Processes {
		one := &Process{Of: p, verbose: o.Verbose}
		sends := map[*model.Comm]uint64{}
		for _, e := range p.Events {
			if (e.Type == format.Coll || e.Type == format.P2p) && e.In != nil {
				one.take(e, o, sends)
			}
		}
		slices.SortStableFunc(one.Operations, func(a, b *Operation) int { return cmp.Compare(a.done, b.done) })
		all = append(all, one)
	}
	return all
}

// take adds an operation, if the inspector would have. It numbers the sends and
// receives of each communicator that are large enough, for NCCL does not.
func (p *Process) take(e *model.Event, o Options, sends map[*model.Comm]uint64) {
	bytes, known := e.Bytes()
	if known && (e.Count() == 0 || bytes < o.MinBytes) {
		p.Left.Small++
		return
	}
	number := e.A
	if e.Type == format.P2p {
		sends[e.In]++
		number = sends[e.In]
	}
	op := &Operation{event: e, Number: number, Bytes: bytes}
	switch {
	case e.Captured:
		p.Left.Captured++
	case !op.finish():
		p.Left.Unfinished++
	case !o.AnyTiming && op.Source != kernelGPU:
		p.Left.Untimed++
	default:
		p.Operations = append(p.Operations, op)
	}
}

// Name is what the inspector calls the process's file.
func (p *Process) Name() string { return p.stem() + ".log" }

// stem makes no path of what a file claims that a host is called.
func (p *Process) stem() string {
	return fmt.Sprintf("%s-pid%d", strings.ReplaceAll(p.Of.Header.Host, "/", "_"), p.Of.Header.PID)
}

// micros is a time of the process in microseconds since 1970.
func (p *Process) micros(at uint64) uint64 {
	h := p.Of.Header
	return (h.Real + at - h.Mono) / 1000
}
