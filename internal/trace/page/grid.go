package page

import (
	"cmp"
	"fmt"
	"slices"

	"weft/internal/trace/summary"
)

// grid shows a figure of every pair of processes: a row for a sender, a column for
// a receiver. The stronger the colour, the slower.
type grid struct {
	ID, Title, About string
	Left, Top        px // where the cells begin
	Wide, Cell       px // of all cells, and of one
	Outline          px // of what is slow
	Width, Height    px
	Rows, Columns    []label
	Cells            []cell
	Legend           []swatch
	Faint, Strong    string // what the ends of the legend stand for
	Upright          bool   // the columns' names
}

type label struct {
	X, Y px
	Text string
}

type cell struct {
	X, Y, TextX, TextY px
	Shade              int
	Slow               bool
	Text, Title        string
}

type swatch struct {
	X, Y  px
	Shade int
}

const (
	gridWide   = 620 // of all cells, at most
	cellWide   = 58  // at most
	cellReads  = 46  // from here on a cell has its figure in it
	letterWide = 7
	lineHigh   = 13
	longest    = 20 // letters of a process in a picture
)

// plan is where the processes are in all grids.
type plan struct {
	r      *summary.Report
	order  []int       // of the report's processes
	place  map[int]int // in order
	cells  []summary.Pair
	frame  grid
	naming func(summary.Process) string
}

// figure is what a grid shows of a pair.
type figure struct {
	id, title, what string
	of              func(summary.Pair) float64 // 0: not known
	slowness        func(float64) float64      // larger where the figure is worse
	write           func(float64) string
}

var figures = []figure{
	{
		"latency", "Time of a message, median", "from its send, or its receive if that came later, to its arrival",
		func(q summary.Pair) float64 { return float64(max(q.P50, 0)) }, func(ns float64) float64 { return ns },
		func(ns float64) string { return took(int64(ns)) },
	},
	{
		"throughput", "Throughput, GB/s", "bytes over the time in which messages were under way",
		func(q summary.Pair) float64 { return q.Bandwidth }, func(rate float64) float64 { return 1 / rate },
		summary.Gigabytes,
	},
}

// grids has one of each figure.
func grids(r *summary.Report) (all []grid, left string) {
	if len(r.Pairs) == 0 {
		return nil, ""
	}
	p, left := newPlan(r)
	for _, f := range figures {
		all = append(all, p.draw(f))
	}
	return all, left
}

func newPlan(r *summary.Report) (*plan, string) {
	p := &plan{r: r, place: map[int]int{}, naming: naming(r)}
	for i := range r.Processes {
		p.order = append(p.order, i)
	}
	slices.SortStableFunc(p.order, func(a, b int) int { // what has no communicator, -1, comes last
		x, y := r.Processes[a], r.Processes[b]
		return cmp.Or(cmp.Compare(uint(x.Communicator), uint(y.Communicator)), cmp.Compare(x.Rank, y.Rank))
	})
	shown := p.shown()
	left := ""
	if n := len(p.order); n > len(shown) {
		left = fmt.Sprintf("%d of %d processes, with all that they send and receive", n-len(shown), n)
	}
	p.order = slices.DeleteFunc(p.order, func(i int) bool { return !shown[i] })
	for at, i := range p.order {
		p.place[i] = at
	}
	inside := slices.DeleteFunc(slices.Clone(r.Pairs), func(q summary.Pair) bool {
		_, from := p.place[q.From]
		_, to := p.place[q.To]
		return !from || !to
	})
	cells, more := first(inside, maxCells, "pairs, the fastest")
	if left != "" && more != "" {
		left += ", and "
	}
	p.cells = cells
	p.axes()
	return p, left + more
}

// shown are the processes that the grids have room for: first those of the slowest pairs.
func (p *plan) shown() map[int]bool {
	shown := map[int]bool{}
	take := func(i int) {
		if len(shown) < maxProcesses {
			shown[i] = true
		}
	}
	for _, q := range p.r.Pairs {
		take(q.From)
		take(q.To)
	}
	for _, i := range p.order {
		take(i)
	}
	return shown
}

// naming is how processes are called where there is little room: by their rank,
// if all are of one communicator.
func naming(r *summary.Report) func(summary.Process) string {
	for _, q := range r.Processes {
		if q.Communicator != 0 {
			return func(q summary.Process) string { return cut(q.Label(), longest) }
		}
	}
	return func(q summary.Process) string { return fmt.Sprint(q.Rank) }
}

// axes places rows and columns.
func (p *plan) axes() {
	n, f := len(p.order), &p.frame
	most := 0
	names := make([]string, n)
	for at, i := range p.order {
		names[at] = p.naming(p.r.Processes[i])
		most = max(most, len([]rune(names[at])))
	}
	f.Cell = min(cellWide, px(gridWide)/px(n))
	f.Wide, f.Outline = f.Cell*px(n), min(3, max(1, f.Cell/6))
	f.Upright = px(most*letterWide+10) > f.Cell
	margin := px(most*letterWide + 34)
	f.Left, f.Top = margin, 44
	if f.Upright {
		f.Top = margin
	}
	f.Width, f.Height = f.Left+max(f.Wide, 300)+12, f.Top+f.Wide+56
	every := 1
	for f.Cell*px(every) < lineHigh {
		every *= 2
	}
	for at := 0; at < n; at += every {
		middle := f.Cell * (px(at) + 0.5)
		f.Rows = append(f.Rows, label{f.Left - 6, f.Top + middle + 4, names[at]})
		column := label{f.Left + middle, f.Top - 6, names[at]}
		if f.Upright {
			column.X += 4
		}
		f.Columns = append(f.Columns, column)
	}
	for s := range shades {
		f.Legend = append(f.Legend, swatch{f.Left + px(100+20*s), f.Top + f.Wide + 24, s})
	}
}

// draw fills the grid with one figure.
func (p *plan) draw(f figure) grid {
	g := p.frame
	g.ID, g.Title = f.id, f.title
	slowness := make([]float64, len(p.cells)) // 0: not known
	best, worst := -1, -1
	for i, q := range p.cells {
		v := f.of(q)
		if v <= 0 {
			continue
		}
		slowness[i] = f.slowness(v)
		if best < 0 || slowness[i] < slowness[best] {
			best = i
		}
		if worst < 0 || slowness[i] > slowness[worst] {
			worst = i
		}
	}
	r := newRamp(slowness)
	for i, q := range p.cells {
		c := cell{
			X: g.Left + g.Cell*px(p.place[q.To]), Y: g.Top + g.Cell*px(p.place[q.From]),
			Shade: r.shade(slowness[i]), Slow: q.Slow, Title: p.title(q),
		}
		c.TextX, c.TextY = c.X+g.Cell/2, c.Y+g.Cell/2+4
		if g.Cell >= cellReads {
			c.Text = "-"
			if v := f.of(q); v > 0 {
				c.Text = f.write(v)
			}
		}
		g.Cells = append(g.Cells, c)
	}
	slices.SortStableFunc(g.Cells, func(a, b cell) int { return cmp.Compare(outlined(a), outlined(b)) })
	g.About = fmt.Sprintf("A row for each sender, a column for each receiver; the stronger the colour, the slower. What is shown: %s.", f.what)
	if worst >= 0 {
		g.Faint, g.Strong = f.write(f.slowness(r.least)), f.write(f.slowness(r.most)) // which undoes itself
		q := p.cells[worst]
		g.About += fmt.Sprintf(" From %s to %s; the slowest is from %s to %s. The table below has the figures.",
			f.write(f.of(p.cells[best])), f.write(f.of(q)), p.r.Processes[q.From].Label(), p.r.Processes[q.To].Label())
	}
	return g
}

// outlined is 1 for a cell that must lie above its neighbours.
func outlined(c cell) int {
	if c.Slow {
		return 1
	}
	return 0
}

func (p *plan) title(q summary.Pair) string {
	bound := took(q.Bound)
	if q.Unknown {
		bound = "not known"
	}
	text := fmt.Sprintf("%s to %s: %s at the median, %s at the 99th percentile, %s GB/s; %s of %s, %d unmatched; error of the clocks %s",
		p.r.Processes[q.From].Label(), p.r.Processes[q.To].Label(), took(q.P50), took(q.P99), summary.Gigabytes(q.Bandwidth),
		plural(q.Messages, "message"), summary.Size(q.Bytes), q.Unmatched, bound)
	if q.Slow {
		text = "Slow link. " + text
	}
	return text
}
