package model

// RunDelay is a window of a process's time in which one of its threads waited long for a core.
type RunDelay struct {
	From, To uint64
	Delay    uint64 // ns, of the thread that waited longest
}

// Delayed is the part of the time between two moments of the trace in which p waited for a core, 0 to 1. Of a window that is
// partly between them a part of the delay counts.
func (p *Process) Delayed(from, to int64) float64 {
	if to <= from {
		return 0
	}
	sum := 0.0
	for _, d := range p.Delays {
		begin, end := p.Machine.At(d.From), p.Machine.At(d.To)
		if within := min(to, end) - max(from, begin); within > 0 {
			sum += float64(d.Delay) * float64(within) / float64(end-begin)
		}
	}
	return min(sum/float64(to-from), 1)
}
