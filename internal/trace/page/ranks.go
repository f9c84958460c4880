package page

import (
	"cmp"
	"fmt"
	"slices"

	"weft/internal/trace/summary"
)

// ranks shows of a communicator how late each rank comes, and how long its part of
// the collectives takes.
type ranks struct {
	summary.Communicator
	ID, About     string
	Error         string // of the clocks, with the GPUs'
	Width, Height px
	Top, Bottom   px
	High          px // of all bars
	Zero          px // where a rank is not late
	Band          extent
	LateTicks     []tick
	TookTicks     []tick
	LateAt        px // where the names of both halves are
	TookAt        px
	Bars          []bar
	Left          string // ranks that have no room in the picture
	Rows          []rankRow
	LeftOfRows    string
}

// extent is a part of an axis.
type extent struct{ X, Wide px }

type bar struct {
	Y, TextY    px
	Name        string
	Late, Took  extent // the median
	Late99      px
	Took99      px
	Straggler   bool
	TookIsKnown bool
	Title       string
}

// rankRow is a row of the table: what is known of a rank.
type rankRow struct {
	Rank  int32
	Late  *summary.Late
	Waits *summary.Waits
}

const (
	barsAt   = 70  // left of it are the ranks' names
	barsWide = 400 // of each half
	barsGap  = 60
	barHigh  = 15
	barsTop  = 24
)

func newRanks(i int, c summary.Communicator) ranks {
	r := ranks{Communicator: c, ID: fmt.Sprintf("ranks%d", i)}
	r.Rows, r.LeftOfRows = first(rankRows(c), maxTable, "ranks")
	if c.Skew == nil {
		return r
	}
	r.Error = took(c.Skew.Bound)
	if c.Skew.Unknown {
		r.Error = "not known"
	}
	r.picture(c.Skew)
	return r
}

func rankRows(c summary.Communicator) []rankRow {
	byRank := map[int32]*rankRow{}
	at := func(rank int32) *rankRow {
		if byRank[rank] == nil {
			byRank[rank] = &rankRow{Rank: rank}
		}
		return byRank[rank]
	}
	if c.Skew != nil {
		for _, l := range c.Skew.Ranks {
			at(l.Rank).Late = &l
		}
	}
	for _, w := range c.Waits {
		at(w.Rank).Waits = &w
	}
	var all []rankRow
	for _, r := range byRank {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b rankRow) int { return cmp.Compare(a.Rank, b.Rank) })
	return all
}

// picture has the ranks that come last, in their order.
func (r *ranks) picture(s *summary.Skew) {
	late := slices.Clone(s.Ranks)
	slices.SortStableFunc(late, func(a, b summary.Late) int { return cmp.Compare(b.P50, a.P50) })
	worst := late[0]
	late, r.Left = first(late, maxRows, "ranks, those that come first")
	slices.SortStableFunc(late, func(a, b summary.Late) int { return cmp.Compare(a.Rank, b.Rank) })
	behind := axis{at: barsAt, wide: barsWide}
	times := axis{at: barsAt + barsWide + barsGap, wide: barsWide}
	for _, l := range late {
		behind.from, behind.to = min(behind.from, l.P50, l.P99), max(behind.to, l.P50, l.P99)
		times.to = max(times.to, int64(l.Took50), int64(l.Took99))
	}
	r.LateTicks, r.TookTicks = behind.ticks(), times.ticks()
	r.Zero, r.LateAt, r.TookAt = behind.x(0), behind.at, times.at
	if !s.Unknown {
		from, to := max(-int64(s.Bound), behind.from), min(int64(s.Bound), behind.to)
		r.Band = extent{behind.x(from), behind.x(to) - behind.x(from)}
	}
	for i, l := range late {
		r.Bars = append(r.Bars, newBar(i, l, behind, times))
	}
	r.Top, r.Bottom = barsTop, barsTop+px(len(late)*barHigh)
	r.High = r.Bottom - r.Top
	r.Width, r.Height = times.at+times.wide+30, r.Bottom+26
	r.About = fmt.Sprintf("A row for each rank. Left: how far it comes behind the median of the others; right: how long its part takes; bars to the median, marks at the 99th percentile. "+
		"Rank %d is furthest behind, by %s at the median, and the last in %d of %d collectives.", worst.Rank, took(worst.P50), worst.Last, s.Compared)
	if !s.Unknown && s.Bound > 0 {
		r.About += " Within the grey band the clocks cannot tell."
	}
}

func newBar(i int, l summary.Late, behind, times axis) bar {
	from, to := behind.x(min(l.P50, 0)), behind.x(max(l.P50, 0))
	b := bar{
		Y: barsTop + px(i*barHigh) + 2, TextY: barsTop + px(i*barHigh) + 11, Name: fmt.Sprint(l.Rank), Late: extent{from, to - from}, Late99: behind.x(l.P99),
		Took: extent{times.at, times.x(int64(l.Took50)) - times.at}, Took99: times.x(int64(l.Took99)), TookIsKnown: l.Took50 > 0, Straggler: l.Straggler,
	}
	b.Title = fmt.Sprintf("rank %d: behind the others by %s at the median, %s at the 99th percentile; the last of %s", l.Rank, took(l.P50), took(l.P99), plural(l.Last, "collective"))
	if b.TookIsKnown {
		b.Title += fmt.Sprintf("; its part takes %s, %s", took(l.Took50), took(l.Took99))
	}
	if l.Straggler {
		b.Title = "Straggler. " + b.Title
	}
	return b
}
