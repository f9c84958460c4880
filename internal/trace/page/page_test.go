package page_test

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/internal/trace/summary"
)

func report(t *testing.T, files ...*rectest.File) *summary.Report {
	t.Helper()
	return summary.New(model.New(rectest.Read(t, files...)))
}

var job = rectest.Job{Ranks: 8, PerMachine: 4, Iterations: 8, Version: 6, Skew: 90_000_000}

// outline has what a reader sees: headings, sentences, how much is in each picture,
// and the beginning of each table.
func outline(n *node, depth int, out *strings.Builder) {
	in := func(format string, args ...any) {
		fmt.Fprintf(out, strings.Repeat("  ", depth)+format+"\n", args...)
	}
	switch n.name {
	case "", "style", "head":
		return
	case "h1", "h2", "h3", "p", "li", "figcaption", "nav", "summary":
		in("%s: %s", strings.Trim(n.name+" "+n.attributes["class"], " "), n.words())
		return
	case "svg":
		drawn := map[string]int{}
		n.walk(func(c *node) {
			if c.name == "rect" || c.name == "text" || c.name == "line" {
				drawn[c.name]++
			}
		})
		in("picture %s x %s: %d rectangles, %d lines, %d texts", n.attributes["width"], n.attributes["height"], drawn["rect"], drawn["line"], drawn["text"])
		for _, g := range n.all("g") {
			if g.attributes["class"] != "" || strings.Contains(g.words(), "Slow link") {
				in("  %s", g.words())
			}
		}
		return
	case "table":
		rows := n.all("tr")
		in("table of %d rows", len(rows)-1)
		for _, r := range rows[:min(len(rows), 3)] {
			var cells []string
			for _, c := range r.children {
				cells = append(cells, c.words())
			}
			in("  %s", strings.Join(cells, " | "))
		}
		return
	case "section":
		in("section %s", n.attributes["id"])
		depth++
	}
	for _, c := range n.children {
		outline(c, depth, out)
	}
}

func TestStructure(t *testing.T) {
	j := job
	j.Late, j.Slow = map[int]uint64{5: 60_000}, map[int]uint64{2: 45_000}
	files := j.Files()
	th := files[7].Thread(9, "torn")
	th.Skip()
	th.Stop(1, 91_000_000)
	var b strings.Builder
	outline(check(t, write(t, report(t, files...))), 0, &b)
	golden.File(t, "testdata/page.txt", b.String())
}

// Whatever a job has or lacks, the page says so.
func TestSays(t *testing.T) {
	late := job
	late.Late = map[int]uint64{5: 60_000}
	two := rectest.Job{Ranks: 2, PerMachine: 2, Iterations: 5, Version: 6}
	far := rectest.Job{Ranks: 3, PerMachine: 1, Iterations: 5, Version: 6, Late: map[int]uint64{1: 60_000}}
	old := job
	old.Version = 2
	for _, c := range []struct {
		what string
		job  rectest.Job
		want []string
	}{
		{"nothing", job, []string{"Nothing stands out", "compared: ranks in 8 collectives of 1 communicator, messages of 8 of 8 links", "nothing was lost; clocks of 2 machines: wrong by at most 15µs"}},
		{"a straggler", late, []string{"1 thing stands out", "straggler: rank 5 of world (node1:105)", "Rank 5 began last"}},
		{"two ranks", two, []string{"Nothing stands out", "which of them was last the clocks cannot tell"}},
		{"a doubt", far, []string{"Nothing stands out", "What may be slow, but cannot be told", "rank 1 of world seems late", "their error is not known"}},
		{"no identity", old, []string{"rank 5; the host does not say which it is", "There is no collective that all ranks have recorded"}},
		{"256 ranks", rectest.Job{Ranks: 256, PerMachine: 8, Iterations: 2, Version: 6}, []string{"Left out: 192 of 256 ranks, those that come first"}},
	} {
		text := check(t, write(t, report(t, c.job.Files()...))).words()
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: the page does not say %q", c.what, w)
			}
		}
	}
	text := check(t, write(t, report(t, rectest.New(2, 1, "n", 1, 0, 0)))).words()
	for _, w := range []string{"No connection was recorded at both ends", "No communicator was recorded", "No collective was recorded"} {
		if !strings.Contains(text, w) {
			t.Errorf("an empty file: the page does not say %q", w)
		}
	}
}

// A large job's page stays one that a browser can open, has the slowest, and says what it lacks.
func TestLimits(t *testing.T) {
	const ranks = 400
	r := &summary.Report{}
	for i := range ranks {
		r.Processes = append(r.Processes, summary.Process{Name: fmt.Sprintf("n:%d", i), Rank: int32(i)})
	}
	for from := range ranks {
		for to := range ranks {
			p := summary.Pair{From: from, To: to, Messages: 1, Bytes: 1000, P50: 100, Bandwidth: 10, Slower: 1}
			r.Pairs = append(r.Pairs, p)
			r.Links = append(r.Links, summary.Link{From: fmt.Sprint(from), To: fmt.Sprint(to)})
		}
	}
	r.Pairs[0] = summary.Pair{From: 399, To: 398, Messages: 1, Bytes: 1000, P50: 900, Bandwidth: 1, Slower: 9, Slow: true}
	for i := range 12 {
		r.Findings = append(r.Findings, summary.Finding{Kind: "slow-link", What: fmt.Sprintf("link %d", i)})
	}
	for range 20 {
		r.Communicators = append(r.Communicators, summary.Communicator{Label: "quick", ID: 1})
	}
	slow := summary.Communicator{Label: "slow", ID: 1, Ranks: ranks, Skew: &summary.Skew{Compared: 5}}
	for i := range ranks {
		slow.Skew.Ranks = append(slow.Skew.Ranks, summary.Late{Rank: int32(i)})
	}
	slow.Skew.Ranks[399] = summary.Late{Rank: 399, P50: 5000, P99: 6000, Last: 5, Straggler: true}
	r.Communicators = append(r.Communicators, slow)
	whole := write(t, r)
	if len(whole) > 6<<20 {
		t.Errorf("the page has %d bytes", len(whole))
	}
	root := check(t, whole)
	for _, w := range []string{
		"12 things stand out", "2 more slow-link: link 10", "144 of 400 processes, with all that they send and receive, and ", "pairs, the fastest", "159700 of 160000 pairs of processes", "159700 of 160000 links",
		"100 of 400 processes", "336 of 400 ranks, those that come first", "100 of 400 ranks", "5 of 21 communicators", "Slow link. rank 399 (n:399) to rank 398 (n:398): 900ns",
		"Straggler. rank 399", "slow: 400 ranks",
	} {
		if !strings.Contains(root.words(), w) {
			t.Errorf("the page does not say %q", w)
		}
	}
}
