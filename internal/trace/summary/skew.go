package summary

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weft/internal/trace/model"
)

// Skew is how far apart the ranks come to their collectives.
type Skew struct {
	Compared int    `json:"compared"` // collectives
	By       string `json:"by"`       // kernel: the GPU began; call: the host enqueued
	P50      uint64 `json:"p50"`      // from the first rank to the last
	P99      uint64 `json:"p99"`
	Bound    uint64 `json:"bound"` // of the clocks' error
	Unknown  bool   `json:"bound_unknown"`
	Ranks    []Late `json:"ranks"`
}

// Late is how one rank comes to them.
type Late struct {
	Rank int32 `json:"rank"`
	Last int   `json:"last"` // to how many it was the last
	P50  int64 `json:"p50"`  // behind the median of the others
	P99  int64 `json:"p99"`
	// How long its part took, from its first kernel or proxy operation to its last; 0: nothing tells.
	Took50 uint64 `json:"took_p50"`
	Took99 uint64 `json:"took_p99"`
	// From when it was done with a collective to when it came to the next.
	Own50     int64 `json:"own_p50"`
	Straggler bool  `json:"straggler"` // that is a finding

	own pauses
}

// A rank is a straggler if it is the last of most collectives, by more than clocks
// can be wrong, and by a part of what they take; and if that is its own doing, not
// that of the collective before, from which it was let go later than others. Where
// its process waits for cores, ranks are late by chance too: then it must be the last
// of more of them, and by more than the turns of a few other threads. (Without a fault
// one was the last of 85 in 104, by 3 ms, where it waited for 90 % of the time; with one
// they were late by 18 ms and more.)
const (
	leastCompared = 3
	leastLast     = 0.5  // of the collectives
	lastByChance  = 0.35 // of them, beyond that, where it waits for a core all the time; by less where it does so less
	leastLate     = 1000 // ns
	turnsOfOthers = 8e6  // ns, beyond that, where it waits for a core all the time; by the square of the part where it does so less
	leastPart     = 0.1  // of the collectives' time
)

// skew compares the ranks of a communicator; nil: there is nothing to compare.
func (r *Report) skew(c *model.Communicator, events map[*model.Comm][]*model.Event, ops []Operation) *Skew {
	if c.ID == 0 || len(c.Comms) < 2 {
		return nil
	}
	s := &Skew{By: "kernel"}
	for _, m := range c.Comms {
		bound, unknown := clockError(m)
		s.Bound, s.Unknown = max(s.Bound, bound), s.Unknown || unknown
	}
	entered := collectives(c, events)
	for _, ranks := range entered {
		for _, e := range ranks {
			if _, ok := began(e); !ok {
				s.By = "call"
			}
		}
	}
	late := map[*model.Comm][]int64{}
	last := map[*model.Comm]int{}
	times := map[*model.Comm][]uint64{}
	var spans []uint64
	for _, ranks := range entered {
		if len(ranks) < len(c.Comms) {
			continue // one that some file no longer has
		}
		spans = append(spans, s.one(c, ranks, late, last))
		for m, e := range ranks {
			if ns, by := duration(e); by != "" {
				times[m] = append(times[m], ns)
			}
		}
	}
	if len(spans) == 0 {
		return nil
	}
	s.Compared, s.P50, s.P99 = len(spans), median(spans), quantile(spans, 0.99)
	for _, m := range c.Comms {
		own := ownTime(m, entered, s.By)
		s.Ranks = append(s.Ranks, Late{
			own: own, Own50: own.p50, Rank: m.Rank, Last: last[m], P50: median(late[m]), P99: quantile(late[m], 0.99),
			Took50: median(times[m]), Took99: quantile(times[m], 0.99),
		})
	}
	r.straggler(c, s, ops)
	return s
}

// one compares the ranks of one collective and returns how far apart they were.
func (s *Skew) one(c *model.Communicator, ranks map[*model.Comm]*model.Event, late map[*model.Comm][]int64, last map[*model.Comm]int) uint64 {
	type entry struct {
		of *model.Comm
		at int64
	}
	var all []entry
	for _, m := range c.Comms {
		at := ranks[m].Time
		if s.By == "kernel" {
			at, _ = began(ranks[m])
		}
		all = append(all, entry{m, m.Process.Machine.At(at)})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	for i, e := range all {
		others := make([]int64, 0, len(all)-1)
		for j, o := range all {
			if j != i {
				others = append(others, o.at)
			}
		}
		late[e.of] = append(late[e.of], e.at-others[(len(others)-1)/2])
	}
	last[all[len(all)-1].of]++
	return uint64(all[len(all)-1].at - all[0].at)
}

// began is when the first of a collective's kernels did.
func began(e *model.Event) (at uint64, ok bool) {
	at = model.Never
	for _, d := range e.Down {
		if d.OnGPU {
			at = min(at, d.From)
		}
	}
	return at, at != model.Never
}

func (r *Report) straggler(c *model.Communicator, s *Skew, ops []Operation) {
	worst := slices.MaxFunc(s.Ranks, func(a, b Late) int { return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.P50, b.P50)) })
	took := uint64(0)
	for _, o := range ops {
		took = max(took, o.P50)
	}
	of := c.Comms[slices.IndexFunc(c.Comms, func(m *model.Comm) bool { return m.Rank == worst.Rank })].Process
	delayed := of.Delayed(of.Machine.At(of.First), of.Machine.At(of.Last))
	least := leastLate + int64(turnsOfOthers*delayed*delayed)
	if s.Compared < leastCompared || float64(worst.Last) <= (leastLast+lastByChance*delayed)*float64(s.Compared) || worst.P50 < least || float64(worst.P50) < leastPart*float64(took) {
		return
	}
	if excess, apart, known := s.own(worst.Rank); known && (excess < leastLate || float64(excess) < leastPart*float64(took) || excess < apart) {
		return
	}
	how := map[string]string{"kernel": "by when their kernels began", "call": "by when the host enqueued them"}[s.By]
	evidence := fmt.Sprintf("last of all %d ranks in %d of %d collectives, %s; %v behind the median of the others at the median, %v at the 99th percentile",
		len(s.Ranks), worst.Last, s.Compared, how, time.Duration(worst.P50), time.Duration(worst.P99))
	switch {
	case s.Unknown:
		r.Notes = append(r.Notes, fmt.Sprintf("rank %d of %s seems late (%s), but the error of the clocks is not known", worst.Rank, c.Label(), evidence))
		return
	case uint64(worst.P50) <= s.Bound:
		r.Notes = append(r.Notes, fmt.Sprintf("rank %d of %s seems late (%s), but the clocks may be wrong by %v", worst.Rank, c.Label(), evidence, time.Duration(s.Bound)))
		return
	}
	for i, m := range c.Comms {
		if m.Rank == worst.Rank {
			s.Ranks[i].Straggler = true
			r.stragglers = append(r.stragglers, m.Process)
			r.find("straggler", fmt.Sprintf("rank %d of %s (%s) comes late to its collectives", worst.Rank, c.Label(), m.Process.Name()),
				fmt.Sprintf("%s; the clocks' error is at most %v%s", evidence, time.Duration(s.Bound), shortOfCores(delayed)))
			return
		}
	}
}
