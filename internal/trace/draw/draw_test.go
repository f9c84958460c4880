package draw_test

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/trace/draw"
	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
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
	rectest.Golden(t, "testdata/job.txt", text(build(t, j.Files()...)))
}

// Everything that a host of today does not do in a plain all-reduce.
func TestRest(t *testing.T) {
	f := rectest.New(4, 7, "node", 1, 0, 0)
	a, b := f.Thread(1, "main"), f.Thread(2, "progress")
	a.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 10, Rank: 3, A: 0xabc, B: 4 << 32, C: 1 | 6<<32})
	a.Put(format.Record{Kind: format.Comm, Comm: 2, Time: 11, Rank: 2, A: 0xabc, B: 4 << 32, C: 1 | 6<<32})
	group := a.Start(format.Group, 20, format.Record{Comm: 1, Rank: 3})
	a.Stop(group, 30)
	call := a.Start(format.P2pAPI, 40, format.Record{Comm: 1, Rank: 3, A: 100, Flags: 1, C: 9, More: [7]uint64{f.Name("Send") | f.Name("ncclFloat16")<<32}})
	a.Stop(call, 60)
	p2p := a.Start(format.P2p, 45, format.Record{Comm: 1, Rank: 3, Parent: call, A: 100, B: 1, More: [7]uint64{f.Name("Send") | f.Name("ncclFloat16")<<32, 2}})
	a.Stop(p2p, 50)
	ctrl := b.Start(format.ProxyCtrl, 70, format.Record{})
	b.State(ctrl, 70, 15, 0)
	b.State(ctrl, 90, 77, 0)
	b.Stop(ctrl, 100)
	ce := a.Start(format.CeColl, 110, format.Record{Comm: 2, Rank: 2, A: 4, B: 64, More: [7]uint64{f.Name("AllGather") | f.Name("nonsense")<<32, f.Name("copy")}})
	a.Stop(ce, 111)
	batch := a.Start(format.CeBatch, 112, format.Record{Comm: 2, Parent: ce, A: 3, B: 4096})
	a.Stop(batch, 120)
	sync := a.Start(format.CeSync, 115, format.Record{Comm: 2, Parent: ce, A: 1 | 4<<32})
	a.Stop(sync, 125)
	kernel := b.Start(format.KernelCh, 130, format.Record{Comm: 2, A: 1})
	phase := b.Start(format.KernelPhase, 131, format.Record{Comm: 2, Parent: kernel, A: 1 | 2<<8, C: f.Name("reduce")})
	b.Stop(phase, 135)
	b.Stop(kernel, 140)
	step := b.Start(format.ProxyStep, 150, format.Record{Comm: 2})
	b.Stop(step, 160)
	socket := b.Start(format.NetPlugin, 151, format.Record{Parent: step, Flags: format.NetSocket, A: 12 | 1<<32, B: 8})
	b.Stop(socket, 155)
	b.Start(40, 170, format.Record{}) // no bit of the mask
	orphan := b.Message(175, 0x77, false, 1, 8, 1)
	b.MessageEnd(180, orphan, 1, 8, 0)
	b.Skip()
	open := a.Start(format.CollAPI, 190, format.Record{Comm: 1})
	b.Stop(0, 200)
	_ = open
	rectest.Golden(t, "testdata/rest.txt", text(build(t, f)))
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
