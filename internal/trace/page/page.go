// Package page writes a report as one HTML file with pictures, which needs neither
// a network nor scripts.
package page

import (
	"bufio"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"weft/internal/trace/summary"
)

// What a page has at most. What it leaves out it says, and has the slowest of all.
const (
	maxFindings      = 10   // unfolded
	maxProcesses     = 256  // in a grid
	maxCells         = 4096 // in a grid
	maxRows          = 64   // in a picture of ranks
	maxTable         = 300  // rows
	maxCommunicators = 16   // with a picture
)

var (
	//go:embed page.html
	text string
	//go:embed style.css
	style string

	layout = template.Must(template.New("page").Funcs(template.FuncMap{
		"size": summary.Size, "gigabytes": summary.Gigabytes, "runs": summary.Runs, "took": anyTook,
	}).Parse(text))
)

// view is what the page is made of.
type view struct {
	*summary.Report
	Style                                template.CSS
	FirstFindings, MoreFindings          []summary.Finding
	Grids                                []grid
	Ranks                                []ranks
	Timelines                            []timeline
	LeftOfGrids, LeftOfRanks             string
	PairRows, LinkRows                   []row
	ProcessRows                          []summary.Process
	CommunicatorRows                     []summary.Communicator
	LeftOfPairs, LeftOfLinks             string
	LeftOfProcesses, LeftOfCommunicators string
}

// row is of a pair or of a link.
type row struct {
	From, To string
	summary.Pair
	Link *summary.Link
}

// Write writes the page of a report.
func Write(w io.Writer, r *summary.Report) error {
	v := &view{Report: r, Style: template.CSS(style)}
	shown := min(len(r.Findings), maxFindings)
	v.FirstFindings, v.MoreFindings = r.Findings[:shown], r.Findings[shown:]
	v.Grids, v.LeftOfGrids = grids(r)
	v.ranks()
	for i, c := range r.Slowest {
		v.Timelines = append(v.Timelines, newTimeline(i, r.Communicators[c.Communicator], c))
	}
	var pairs []summary.Pair
	var links []summary.Link
	pairs, v.LeftOfPairs = first(r.Pairs, maxTable, "pairs of processes")
	for _, p := range pairs {
		v.PairRows = append(v.PairRows, row{From: r.Processes[p.From].Label(), To: r.Processes[p.To].Label(), Pair: p})
	}
	links, v.LeftOfLinks = first(r.Links, maxTable, "links")
	for _, l := range links {
		v.LinkRows = append(v.LinkRows, row{From: l.From, To: l.To, Link: &l})
	}
	processes := slices.Clone(r.Processes)
	slices.SortStableFunc(processes, func(a, b summary.Process) int { return cmp.Compare(b.Missing(), a.Missing()) })
	v.ProcessRows, v.LeftOfProcesses = first(processes, maxTable, "processes")
	v.CommunicatorRows, v.LeftOfCommunicators = first(r.Communicators, maxTable, "communicators")
	out := bufio.NewWriter(w)
	if err := layout.Execute(out, v); err != nil {
		return err
	}
	return out.Flush()
}

// ranks has a picture of each communicator; those with a straggler come first.
func (v *view) ranks() {
	order := slices.Clone(v.Communicators)
	slices.SortStableFunc(order, func(a, b summary.Communicator) int { return cmp.Compare(straggles(b), straggles(a)) })
	order, v.LeftOfRanks = first(order, maxCommunicators, "communicators")
	for i, c := range order {
		v.Ranks = append(v.Ranks, newRanks(i, c))
	}
}

func straggles(c summary.Communicator) int {
	if c.Skew != nil && slices.ContainsFunc(c.Skew.Ranks, func(l summary.Late) bool { return l.Straggler }) {
		return 1
	}
	return 0
}

// first keeps so many and says what that leaves out.
func first[T any](all []T, most int, what string) (kept []T, left string) {
	if len(all) <= most {
		return all, ""
	}
	return all[:most], fmt.Sprintf("%d of %d %s", len(all)-most, len(all), what)
}
