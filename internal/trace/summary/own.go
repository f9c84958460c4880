package summary

import (
	"cmp"
	"slices"

	"weft/internal/trace/model"
)

// pauses are a rank's times between collectives: the median, and how far the middle
// half of them lies apart.
type pauses struct {
	count       int
	p50, spread int64
}

// ownTime is what a rank spends on its own, from the end of each collective to when
// it comes to the next. Where nothing tells when they ended, it is not known.
func ownTime(m *model.Comm, entered map[collective]map[*model.Comm]*model.Event, by string) (p pauses) {
	type part struct{ from, to uint64 }
	var all []part
	for _, ranks := range entered {
		e := ranks[m]
		if e == nil || e.Open || e.Launch {
			continue
		}
		from := e.Time
		if by == "kernel" {
			from, _ = began(e)
		}
		all = append(all, part{from, e.To})
	}
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	var between []int64
	for i := 1; i < len(all); i++ {
		between = append(between, int64(all[i].from-all[i-1].to))
	}
	p.count = len(between)
	p.p50, p.spread = median(between), quantile(between, 0.75)-quantile(between, 0.25)
	return p
}

// own is by how much a rank's own time exceeds that of the others at the median, and
// how far theirs lie apart.
func (s *Skew) own(rank int32) (excess, apart int64, known bool) {
	var times, spreads []int64
	mine := pauses{}
	for _, l := range s.Ranks {
		switch {
		case l.own.count < leastCompared-1:
			return 0, 0, false
		case l.Rank == rank:
			mine = l.own
		default:
			times, spreads = append(times, l.own.p50), append(spreads, l.own.spread)
		}
	}
	return mine.p50 - median(times), median(spreads), true
}
