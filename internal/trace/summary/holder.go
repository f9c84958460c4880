package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// A process keeps others waiting if for much of the time it neither waits for
// anybody nor has anything under way, and others nearly always do: not once, as on
// a machine that is busy, but in nearly all parts of the time.
const (
	leastMessages = 10
	leastTime     = int64(time.Second / 2)
	pieces        = 8
	leastMost     = 7    // parts in which no other has more time of its own
	leastOwn      = 0.2  // of each part
	leastOwnMore  = 0.15 // of all, than others at the median
	mostByChance  = 0.35 // of all, beyond that: on cores that many threads want a process may lose that much to others by chance
)

// busy is when a process waits for others, or has something under way to them.
type busy struct {
	of       *model.Process
	messages int
	spans    []span
}

func (x *busy) add(from, to uint64) {
	m := x.of.Machine
	x.spans = append(x.spans, span{m.At(from), m.At(to)})
}

// receives adds a receive that is posted, up to when its data is there: cards bring
// it while their host looks elsewhere, and the sender's tells when.
func (x *busy) receives(m *model.Message) {
	to := x.of.Machine.At(m.To)
	if s := m.Other; s != nil && m.End.Network == format.OverRDMA>>8 && !s.Open {
		to = min(to, s.End.Process.Machine.At(s.To))
	}
	from := x.of.Machine.At(m.From)
	x.spans = append(x.spans, span{from, max(from, to)})
}

// sends adds the sends of one connection, and when the host has asked for them
// before their receives were there.
func (x *busy) sends(all []*model.Message) {
	for _, m := range all {
		if x.add(m.From, m.To); m.Vain != 0 {
			x.add(m.Vain, m.From)
		}
	}
}

// busiest are the processes with what they have done, and the time of which all have
// recorded it: files of a job that goes on are read one after the other.
func busiest(t *model.Trace) (all []*busy, first, last int64) {
	first, last = math.MinInt64, math.MaxInt64
	for _, p := range t.Processes {
		x := &busy{of: p}
		for _, e := range p.Ends {
			switch {
			case e.Of == nil:
				continue
			case e.Sends:
				x.sends(e.Messages)
			default:
				for _, m := range e.Messages {
					x.receives(m)
				}
			}
			x.messages += len(e.Messages)
		}
		if x.messages < leastMessages {
			continue
		}
		begun := slices.MinFunc(x.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) }).from
		first, last = max(first, begun), min(last, p.Machine.At(p.Seen()))
		all = append(all, x)
	}
	return all, first, last
}

// holders accuses those that keep others waiting, but for victims, and returns them.
func (r *Report) holders(t *model.Trace, victims []*model.Process) (found []*model.Process) {
	all, first, last := busiest(t)
	if len(all) <= 2 || last-first < leastTime {
		return nil
	}
	own, most := make([][]float64, len(all)), make([]int, len(all))
	for i, x := range all {
		own[i] = x.own(first, last)
	}
	for at := range pieces {
		i := slices.IndexFunc(own, func(o []float64) bool {
			return !slices.ContainsFunc(own, func(other []float64) bool { return other[at] > o[at] })
		})
		if own[i][at] >= leastOwn {
			most[i]++
		}
	}
	for i, x := range all {
		var others []float64
		for k := range all {
			if k != i {
				others = append(others, mean(own[k]))
			}
		}
		slices.Sort(others)
		mine, middle := mean(own[i]), others[len(others)/2]
		delayed := x.of.Delayed(first, last)
		if most[i] < leastMost || mine < middle+leastOwnMore+mostByChance*delayed || slices.Contains(victims, x.of) {
			continue
		}
		found = append(found, x.of)
		if !slices.Contains(r.stragglers, x.of) {
			r.find("slow-process", x.of.Title()+" keeps others waiting",
				fmt.Sprintf("for %.0f%% of the time, in %d of %d parts of it, it waits for nobody and has nothing under way, the median of the %d others for %.0f%%%s",
					100*mine, most[i], pieces, len(others), 100*middle, shortOfCores(delayed)))
		}
	}
	return found
}

// shortOfCores is what to say of a process that waited for cores for a part of the time.
func shortOfCores(delayed float64) string {
	if delayed < leastOwn {
		return ""
	}
	return fmt.Sprintf("; for %.0f%% of it one of its threads could run and had no core", 100*delayed)
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}

// own is the part of each slice of the time in which the process does neither.
func (x *busy) own(first, last int64) []float64 {
	out := make([]float64, pieces)
	for at := range out {
		from, to := first+(last-first)*int64(at)/pieces, first+(last-first)*int64(at+1)/pieces
		var within []span
		for _, s := range x.spans {
			if s.from < to && s.to > from {
				within = append(within, span{max(s.from, from), min(s.to, to)})
			}
		}
		out[at] = 1 - float64(length(within))/float64(to-from)
	}
	return out
}
