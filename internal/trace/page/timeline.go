package page

import (
	"cmp"
	"fmt"
	"slices"

	"weft/internal/trace/summary"
)

// timeline shows one collective on its ranks.
type timeline struct {
	summary.Collective
	ID, Title, About string
	Error            string // of the clocks
	Width, Height    px
	Top, Bottom      px
	Ticks            []tick
	Lanes            []lane
	Left             string // ranks that have no room in the picture
	Rows             []summary.Part
	LeftOfRows       string
}

// lane is a rank's.
type lane struct {
	Y, TextY px
	Name     string
	Waits    extent // from enqueueing to the beginning
	Works    extent
	Last     bool // it began last, by more than the clocks can be wrong
	Open     bool
	Title    string
}

const (
	lanesAt   = 70
	lanesWide = 840
)

func newTimeline(i int, of summary.Communicator, c summary.Collective) timeline {
	t := timeline{Collective: c, ID: fmt.Sprintf("timeline%d", i), Error: took(c.Bound)}
	if c.Unknown {
		t.Error = "not known"
	}
	t.Title = fmt.Sprintf("%s number %d of %s, %s: %s", c.Func, c.Number, of.Label, summary.Size(c.Bytes), took(c.Took))
	t.Rows, t.LeftOfRows = first(c.Parts, maxTable, "ranks")
	latestFirst := slices.Clone(c.Parts)
	slices.SortStableFunc(latestFirst, func(a, b summary.Part) int { return cmp.Compare(b.Began, a.Began) })
	last := latestFirst[0]
	shown, left := first(latestFirst, maxRows, "ranks, those that began first")
	t.Left = left
	slices.SortStableFunc(shown, func(a, b summary.Part) int { return cmp.Compare(a.Rank, b.Rank) })
	x := axis{at: lanesAt, wide: lanesWide}
	began := last.Began
	for _, p := range c.Parts {
		x.to = max(x.to, p.Enqueued, p.Ended)
		if p.TimedBy != "" {
			began = min(began, p.Began)
		}
	}
	certain := !c.Unknown && last.Began-began > int64(c.Bound)
	t.Ticks = x.ticks()
	for i, p := range shown {
		t.Lanes = append(t.Lanes, newLane(i, p, x, certain && p.Rank == last.Rank))
	}
	t.Top, t.Bottom = barsTop, barsTop+px(len(shown)*barHigh)
	t.Width, t.Height = lanesAt+lanesWide+40, t.Bottom+26
	t.About = fmt.Sprintf("A row for each rank: thin from when the host enqueued the collective, thick from its first kernel or proxy operation to its last. Recorded on %s", plural(len(c.Parts), "rank"))
	if of.Ranks > 0 {
		t.About += fmt.Sprintf(" of %d", of.Ranks)
	}
	t.About += "."
	switch spread := last.Began - began; {
	case len(c.Parts) < 2:
	case certain:
		t.About += fmt.Sprintf(" Rank %d began last, %s after the first; error of the clocks %s.", last.Rank, took(spread), t.Error)
	default:
		t.About += fmt.Sprintf(" They began within %s of one another; which of them was last the clocks cannot tell: their error is %s.", took(spread), t.Error)
	}
	return t
}

func newLane(i int, p summary.Part, x axis, last bool) lane {
	top := px(barsTop + i*barHigh)
	l := lane{Y: top + 2, TextY: top + 11, Name: fmt.Sprint(p.Rank), Last: last, Open: p.Open}
	if p.TimedBy == "" {
		l.Waits = extent{x.x(p.Enqueued), 2}
		l.Title = fmt.Sprintf("rank %d: enqueued at %s; nothing tells when it began and ended", p.Rank, took(p.Enqueued))
		return l
	}
	l.Waits = extent{x.x(p.Enqueued), max(0, x.x(p.Began)-x.x(p.Enqueued))}
	l.Works = extent{x.x(p.Began), max(1, x.x(p.Ended)-x.x(p.Began))}
	l.Title = fmt.Sprintf("rank %d: enqueued at %s, began at %s, ended at %s, by its %s", p.Rank, took(p.Enqueued), took(p.Began), took(p.Ended), p.TimedBy)
	if p.Open {
		l.Title += "; it had not ended when the recording did"
	}
	return l
}
