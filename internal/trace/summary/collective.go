package summary

import (
	"cmp"
	"slices"

	"weft/internal/trace/clock"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// slowestKept is how many of the slowest collectives a report has.
const slowestKept = 4

// Collective is one on the ranks that have it.
type Collective struct {
	Communicator int    `json:"communicator"` // of Report's
	Func         string `json:"func"`
	Number       uint64 `json:"number"` // of its function in the communicator
	Bytes        uint64 `json:"bytes"`
	Algorithm    string `json:"algorithm,omitempty"`
	Protocol     string `json:"protocol,omitempty"`
	Took         int64  `json:"took"`  // from when the first rank began to when the last was done
	Bound        uint64 `json:"bound"` // of the clocks' error
	Unknown      bool   `json:"bound_unknown"`
	Parts        []Part `json:"parts"` // by rank
}

// Part is a rank's in a collective. Times are ns since the first rank enqueued it,
// or began.
type Part struct {
	Rank     int32  `json:"rank"`
	Enqueued int64  `json:"enqueued"`
	Began    int64  `json:"began"`
	Ended    int64  `json:"ended"`
	TimedBy  string `json:"timed_by"` // kernel, proxy; "": nothing tells when it began and ended
	Open     bool   `json:"open"`     // it had not ended when the recording did
}

// Took is how long the rank was at work.
func (p Part) Took() int64 { return p.Ended - p.Began }

// collective is one on all ranks: the number is of its function. What has the same
// again, as with hosts that do not count, is told apart by its order.
type collective struct {
	fn     string
	number uint64
	again  int
}

// collectives are those of a communicator, each with its event on the ranks that
// have one. What graphs captured is none: it may have run many times.
func collectives(c *model.Communicator, events map[*model.Comm][]*model.Event) map[collective]map[*model.Comm]*model.Event {
	all := map[collective]map[*model.Comm]*model.Event{}
	for _, m := range c.Comms {
		times := map[collective]int{}
		for _, e := range events[m] {
			if e.Type != format.Coll || e.Captured {
				continue
			}
			k := collective{fn: e.Func(), number: e.A}
			times[k]++
			k.again = times[k]
			if k.again > 1 && m.Process.Loss.Any() {
				continue
			}
			if all[k] == nil {
				all[k] = map[*model.Comm]*model.Event{}
			}
			all[k][m] = e
		}
	}
	return all
}

// slowest keeps the collectives that took longest.
func (r *Report) slowest(t *model.Trace, events map[*model.Comm][]*model.Event) {
	r.Slowest = []Collective{}
	for i, c := range t.Communicators {
		all := collectives(c, events)
		keys := make([]collective, 0, len(all))
		for k := range all {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b collective) int {
			return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.again, b.again), cmp.Compare(a.fn, b.fn))
		})
		for _, k := range keys {
			if one := parts(c, all[k]); one.Took > 0 {
				one.Communicator, one.Func, one.Number = i, k.fn, k.number
				r.Slowest = append(r.Slowest, one)
			}
		}
		slices.SortStableFunc(r.Slowest, func(a, b Collective) int { return cmp.Compare(b.Took, a.Took) })
		r.Slowest = r.Slowest[:min(len(r.Slowest), slowestKept)]
	}
}

// parts are those of one collective.
func parts(c *model.Communicator, ranks map[*model.Comm]*model.Event) Collective {
	var one Collective
	zero, from, to := int64(0), int64(0), int64(0)
	some := false
	for _, m := range c.Comms {
		e := ranks[m]
		if e == nil {
			continue
		}
		bytes, _ := e.Bytes()
		one.Bytes, one.Algorithm, one.Protocol = Traffic(e.Func(), bytes, c.Ranks), e.Algorithm(), e.Protocol()
		bound, unknown := clockError(m)
		one.Bound, one.Unknown = max(one.Bound, bound), one.Unknown || unknown
		p := Part{Rank: m.Rank, Enqueued: m.Process.Machine.At(e.Time), Open: e.Open}
		if len(one.Parts) == 0 {
			zero = p.Enqueued
		}
		if began, ended, by := worked(e); by != "" {
			p.Began, p.Ended, p.TimedBy = m.Process.Machine.At(began), m.Process.Machine.At(ended), by
			if !some {
				some, from, to = true, p.Began, p.Ended
			}
			from, to = min(from, p.Began), max(to, p.Ended)
			zero = min(zero, p.Began)
		}
		zero = min(zero, p.Enqueued)
		one.Parts = append(one.Parts, p)
	}
	for i := range one.Parts {
		p := &one.Parts[i]
		p.Enqueued -= zero
		if p.TimedBy != "" {
			p.Began -= zero
			p.Ended -= zero
		}
	}
	one.Took = to - from
	return one
}

// clockError is what the clocks of a rank's machine and GPU may be wrong by.
func clockError(m *model.Comm) (bound uint64, unknown bool) {
	o := m.Process.Machine.Clock
	bound = o.Bound
	for _, g := range m.Process.GPU {
		if g.Comm == m {
			bound += g.Slack
		}
	}
	return bound, o.Basis == clock.Wall
}
