package summary_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/internal/trace/summary"
	"weft/transport/record/format"
)

// Two devices between two processes are two links and one pair. What is under way at
// the same time is so once.
func TestPairs(t *testing.T) {
	type message struct{ sent, posted, came, bytes uint64 }
	for _, c := range []struct {
		what     string
		messages [2][]message // of each device
		want     []float64    // the links' bandwidths, as they come
		pair     summary.Pair
	}{
		{
			"one after the other", [2][]message{{{100, 50, 200, 1000}, {300, 50, 400, 1000}}},
			[]float64{10}, summary.Pair{From: 0, To: 1, Messages: 2, Bytes: 2000, P50: 100, P99: 100, Bandwidth: 10},
		},
		{
			"receives that came late", [2][]message{{{100, 150, 200, 1000}, {300, 350, 400, 1000}}},
			[]float64{20}, summary.Pair{From: 0, To: 1, Messages: 2, Bytes: 2000, P50: 50, P99: 50, Bandwidth: 20},
		},
		{
			"both at once", [2][]message{{{100, 50, 200, 1000}}, {{150, 50, 250, 500}}},
			[]float64{10, 5}, summary.Pair{From: 0, To: 1, Messages: 2, Bytes: 1500, P50: 100, P99: 100, Bandwidth: 10},
		},
		{
			"one within another", [2][]message{{{100, 50, 400, 1000}, {200, 50, 300, 2000}}},
			[]float64{10}, summary.Pair{From: 0, To: 1, Messages: 2, Bytes: 3000, P50: 300, P99: 300, Bandwidth: 10},
		},
		{
			"no time at all", [2][]message{{{100, 100, 100, 1000}}},
			[]float64{0}, summary.Pair{From: 0, To: 1, Messages: 1, Bytes: 1000},
		},
	} {
		from, to := rectest.New(2, 1, "n", 1, 0, 0), rectest.New(2, 2, "n", 1, 0, 0)
		s, r := from.Thread(1, "t"), to.Thread(1, "t")
		for device, messages := range c.messages {
			if len(messages) == 0 {
				continue
			}
			handle, name := uint64(0x10+device), []string{"mlx5_0", "mlx5_1"}[device]
			s.Link(10, handle, true, 2, 0x100+handle, name, "n", 0)
			r.Link(10, handle, false, 2, 0x100+handle, name, "n", 0)
			for i, m := range messages {
				group := uint64(i + 1)
				out := s.Message(m.sent, handle, true, group, m.bytes, 5)
				s.MessageEnd(m.came, out, group, m.bytes, 0)
				in := r.Message(m.posted, handle, false, group, m.bytes, 5)
				r.MessageEnd(m.came, in, group, m.bytes, 0)
			}
		}
		rep := build(t, from, to)
		var links []float64
		for _, l := range rep.Links {
			links = append(links, l.Bandwidth)
			if l.FromProcess != 0 || l.ToProcess != 1 {
				t.Errorf("%s: a link from process %d to %d", c.what, l.FromProcess, l.ToProcess)
			}
		}
		if d := cmp.Diff(c.want, links); d != "" {
			t.Errorf("%s: links %s", c.what, d)
		}
		if d := cmp.Diff([]summary.Pair{c.pair}, rep.Pairs); d != "" {
			t.Errorf("%s: pairs %s", c.what, d)
		}
	}
}

// What is accused in words is marked in the figures.
func TestMarks(t *testing.T) {
	j := job
	j.Late, j.Slow = map[int]uint64{5: 60_000}, map[int]uint64{2: 45_000}
	r := build(t, j.Files()...)
	for _, l := range r.Links {
		if l.Slow != (l.FromProcess == 2) {
			t.Errorf("the link from %s is marked: %t", l.From, l.Slow)
		}
	}
	if !r.Pairs[0].Slow || r.Pairs[0].From != 2 || r.Pairs[1].Slow {
		t.Errorf("pairs %+v", r.Pairs[:2])
	}
	for _, l := range r.Communicators[0].Skew.Ranks {
		if l.Straggler != (l.Rank == 5) {
			t.Errorf("rank %d is marked: %t", l.Rank, l.Straggler)
		}
		// The others wait for the late rank, and two for the slow link.
		if late := l.Rank == 5; late != (l.Took50 < 40_000) || l.Took99 < l.Took50 {
			t.Errorf("rank %d took %d, %d", l.Rank, l.Took50, l.Took99)
		}
	}
}

// A process is called by its rank in its first communicator.
func TestLabels(t *testing.T) {
	r := build(t, append(job.Files(), rectest.New(2, 9, "other", 9, 0, 0))...)
	if q := r.Processes[3]; q.Label() != "rank 3 (node0:103)" || q.Communicator != 0 || q.Rank != 3 {
		t.Errorf("%+v", q)
	}
	if q := r.Processes[8]; q.Label() != "other:9" || q.Communicator != -1 || q.Rank != -1 {
		t.Errorf("%+v", q)
	}
}

func TestSlowest(t *testing.T) {
	f, g := rectest.New(2, 1, "n", 1, 0, 0), rectest.New(2, 2, "n", 1, 0, 0)
	for rank, a := range []*rectest.Thread{f.Thread(1, "t"), g.Thread(1, "t")} {
		file := []*rectest.File{f, g}[rank]
		me := int32(rank)
		a.Put(format.Record{Kind: format.Comm, Comm: 1, Rank: me, Time: 1, A: 7, B: 2 << 32, C: 1 | 6<<32})
		for i, took := range []uint64{500, 900, 100, 700, 600, 0} {
			at := 1000*uint64(i+1) + 10*uint64(rank)
			coll := a.Start(format.Coll, at, format.Record{Comm: 1, Rank: me, A: uint64(i), B: 1000, More: [7]uint64{
				file.Name("AllReduce") | file.Name("ncclInt32")<<32, file.Name("RING") | file.Name("LL")<<32,
			}})
			a.Stop(coll, at+1)
			if took == 0 || i == 3 && rank == 1 {
				continue // nothing tells when it ended
			}
			op := a.Start(format.ProxyOp, at+5, format.Record{Comm: 1, Rank: me, Parent: coll, A: uint64(rank + 1)})
			if i != 4 || rank != 0 {
				a.Stop(op, at+5+took)
			}
		}
		a.CommEnd(9000)
	}
	r := build(t, f, g)
	want := []summary.Collective{
		{Number: 4, Took: 3995, Parts: []summary.Part{ // one has not ended, and is as long as the recording
			{Rank: 0, Began: 5, Ended: 4000, TimedBy: "proxy", Open: true}, {Rank: 1, Enqueued: 10, Began: 15, Ended: 615, TimedBy: "proxy"},
		}},
		{Number: 1, Took: 910, Parts: []summary.Part{
			{Rank: 0, Began: 5, Ended: 905, TimedBy: "proxy"}, {Rank: 1, Enqueued: 10, Began: 15, Ended: 915, TimedBy: "proxy"},
		}},
		{Number: 3, Took: 700, Parts: []summary.Part{{Rank: 0, Began: 5, Ended: 705, TimedBy: "proxy"}, {Rank: 1, Enqueued: 10}}},
		{Number: 0, Took: 510, Parts: []summary.Part{
			{Rank: 0, Began: 5, Ended: 505, TimedBy: "proxy"}, {Rank: 1, Enqueued: 10, Began: 15, Ended: 515, TimedBy: "proxy"},
		}},
	}
	for i := range want {
		want[i].Func, want[i].Bytes, want[i].Algorithm, want[i].Protocol = "AllReduce", 4000, "RING", "LL"
	}
	if d := cmp.Diff(want, r.Slowest); d != "" {
		t.Error(d)
	}
	if took := r.Slowest[1].Parts[1].Took(); took != 900 {
		t.Errorf("a part took %d", took)
	}
}

// What figures rest on, in a line each.
func TestBasis(t *testing.T) {
	torn := func(f *rectest.File) {
		th := f.Thread(9, "torn")
		th.Skip()
		th.Stop(1, 2)
	}
	none := rectest.Job{Ranks: 3, PerMachine: 1, Iterations: 5, Version: 6}
	for _, c := range []struct {
		what                     string
		job                      rectest.Job
		change                   func([]*rectest.File)
		losses, clocks, compared string
		lossy                    bool
		remarks, doubts          int
	}{
		{"all is there", job, nil, "nothing was lost", "clocks of 2 machines: wrong by at most 15µs against the first machine's", "compared: ranks in 8 collectives of 1 communicator, messages of 8 of 8 links", false, 0, 0},
		{"two files lack something", job, func(f []*rectest.File) { torn(f[1]); torn(f[2]) }, "lost by 2 of 8 processes: 2 torn records", "clocks of 2 machines: wrong by at most 15µs against the first machine's", "compared: ranks in 8 collectives of 1 communicator, messages of 8 of 8 links", true, 2, 0},
		{"one machine", rectest.Job{Ranks: 1, PerMachine: 1, Iterations: 1, Version: 6}, nil, "nothing was lost", "one machine, one clock", "compared: ranks in 0 collectives of 0 communicators, messages of 0 of 1 link", false, 0, 0},
		{"no messages both ways", none, nil, "nothing was lost", "clocks of 3 machines: realtime clocks, whose error is not known", "compared: ranks in 5 collectives of 1 communicator, messages of 3 of 3 links", false, 2, 0},
	} {
		files := c.job.Files()
		if c.change != nil {
			c.change(files)
		}
		r := build(t, files...)
		if r.Losses() != c.losses || r.ClockError() != c.clocks || r.Compared() != c.compared || r.Lossy() != c.lossy {
			t.Errorf("%s: %q, %q, %q, lossy %t", c.what, r.Losses(), r.ClockError(), r.Compared(), r.Lossy())
		}
		if len(r.Remarks()) != c.remarks || len(r.Doubts()) != c.doubts {
			t.Errorf("%s: remarks %q, doubts %q", c.what, r.Remarks(), r.Doubts())
		}
	}
	r := &summary.Report{
		Processes: []summary.Process{{Overwritten: 3}, {Refused: 1, Unread: 2}},
		Clocks:    []summary.Clock{{Basis: "reference"}, {Basis: "messages", Bound: 5000}, {Basis: "realtime clocks"}},
	}
	if want := "lost by 2 of 2 processes: up to 3 overwritten records, 1 refused event, 2 unread chunks"; r.Losses() != want {
		t.Errorf("%q, want %q", r.Losses(), want)
	}
	if want := "clocks of 3 machines: wrong by at most 5µs against the first machine's; of 1 of them, on realtime clocks, the error is not known"; r.ClockError() != want {
		t.Errorf("%q, want %q", r.ClockError(), want)
	}
}

// What seems late where the clocks cannot tell stands apart from notes on the files.
func TestDoubts(t *testing.T) {
	j := rectest.Job{Ranks: 3, PerMachine: 1, Iterations: 5, Version: 6, Late: map[int]uint64{1: 60_000}}
	r := summary.New(model.New(rectest.Read(t, j.Files()...)))
	if len(r.Remarks()) != 2 || len(r.Doubts()) != 1 || len(r.Notes) != 3 {
		t.Errorf("remarks %q, doubts %q", r.Remarks(), r.Doubts())
	}
}
