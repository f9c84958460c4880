package draw_test

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/trace/draw"
	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
)

func build(t *testing.T, files ...*rectest.File) *draw.Picture {
	t.Helper()
	return draw.New(model.New(rectest.Read(t, files...)))
}

// text shows a picture: times are from and to.
func text(p *draw.Picture) string {
	var b strings.Builder
	var slice func(depth int, s draw.Slice)
	slice = func(depth int, s draw.Slice) {
		fmt.Fprintf(&b, "%*s[%d %d] %s: %s", 2*depth, "", s.From, s.To, s.Category, s.Name)
		for _, a := range s.Args {
			fmt.Fprintf(&b, ", %s %v", a.Name, a.Value)
		}
		if s.Out != 0 {
			fmt.Fprintf(&b, " ->%d", s.Out)
		}
		for _, in := range s.In {
			fmt.Fprintf(&b, " %d->", in)
		}
		b.WriteString("\n")
		for _, in := range s.Inner {
			slice(depth+1, in)
		}
	}
	var tracks func(depth int, all []*draw.Track)
	tracks = func(depth int, all []*draw.Track) {
		for _, t := range all {
			for i, lane := range append(t.Lanes(), nil) {
				if i == 0 || lane != nil {
					fmt.Fprintf(&b, "%*s%s\n", 2*depth, "", t.Name)
				}
				for _, s := range lane {
					slice(depth+1, s)
				}
			}
			tracks(depth+1, t.Tracks)
		}
	}
	for _, pr := range p.Processes {
		fmt.Fprintf(&b, "%s %q\n", pr.Name, pr.Labels)
		tracks(1, pr.Tracks)
	}
	fmt.Fprintf(&b, "%d arrows %q\n", p.Arrows, p.Notes)
	return b.String()
}

func TestJob(t *testing.T) {
	j := rectest.Job{Ranks: 2, PerMachine: 1, Iterations: 2, Version: 6, Skew: 90_000_000, Late: map[int]uint64{1: 40_000}}
	golden.File(t, "testdata/job.txt", text(build(t, j.Files()...)))
}

func TestRest(t *testing.T) {
	golden.File(t, "testdata/rest.txt", text(build(t, rectest.Rest())))
}

// Where only wall clocks align two machines, a message may seem to arrive before it leaves.
func TestArrowsPointForward(t *testing.T) {
	a, b := rectest.New(1, 1, "a", 1, 0, 1000), rectest.New(1, 2, "b", 2, 0, 0)
	s, r := a.Thread(1, ""), b.Thread(2, "")
	s.Link(10, 1, true, 2, 7, "", "", 0)
	r.Link(10, 1, false, 2, 7, "", "", 0)
	for i := range uint64(2) {
		m := s.Message(100+i, 1, true, i+1, 8, 0)
		s.MessageEnd(200, m, i+1, 8, 0)
		m = r.Message(100+i, 1, false, i+1, 8, 0)
		r.MessageEnd(500+i*900, m, i+1, 8, 0)
	}
	p := build(t, a, b)
	if p.Arrows != 1 || len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0], "1 messages have no arrow") {
		t.Errorf("%d arrows, %q", p.Arrows, p.Notes)
	}
}
