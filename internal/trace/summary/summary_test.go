package summary_test

import (
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/internal/trace/summary"
	"weft/transport/record/format"
)

func build(t *testing.T, files ...*rectest.File) *summary.Report {
	t.Helper()
	return summary.New(model.New(rectest.Read(t, files...)))
}

func text(t *testing.T, r *summary.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// job has three links a machine, so that there is something to compare.
var job = rectest.Job{Ranks: 8, PerMachine: 4, Iterations: 8, Version: 6, Skew: 90_000_000}

// What is slow is named, and nothing where nothing is.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		what string
		late map[int]uint64
		slow map[int]uint64
		want []string
	}{
		{"nothing", nil, nil, nil},
		{"a late rank", map[int]uint64{5: 60_000}, nil, []string{"rank 5 of world (node1:105) comes late"}},
		{"a slow link", nil, map[int]uint64{2: 45_000}, []string{"the link from rank 2 (node0:102) to rank 3 (node0:103)"}},
		{"a link that is slower by some microseconds", nil, map[int]uint64{2: 9_500}, nil},
		{"a slow link between machines", nil, map[int]uint64{3: 60_000}, []string{"the link from rank 3 (node0:103) to rank 4 (node1:104)"}},
		{"both", map[int]uint64{0: 60_000}, map[int]uint64{6: 60_000}, []string{"rank 0 of world", "the link from rank 6"}},
	} {
		j := job
		j.Late, j.Slow = c.late, c.slow
		r := build(t, j.Files()...)
		if len(r.Findings) != len(c.want) {
			t.Errorf("%s: findings %+v, want %q; notes %q", c.what, r.Findings, c.want, r.Notes)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(r.Findings[i].What, w) {
				t.Errorf("%s: %q, want %q", c.what, r.Findings[i].What, w)
			}
		}
	}
}

// Of a few messages a core that was away for a moment makes the median: they accuse nobody.
func TestFewMessages(t *testing.T) {
	for iterations, want := range map[int]int{5: 0, 8: 1} {
		j := job
		j.Iterations, j.Slow = iterations, map[int]uint64{2: 45_000}
		if r := build(t, j.Files()...); len(r.Findings) != want {
			t.Errorf("%d iterations: findings %+v, want %d", iterations, r.Findings, want)
		}
	}
}

// Where a process at a link's ends waits for cores, messages take long for that reason too, and more of them are needed to tell.
func TestSlowLinkOnBusyCores(t *testing.T) {
	for _, c := range []struct{ iterations, slow, delayed, want int }{
		{10, 45_000, 0, 1}, {10, 45_000, 60, 0}, {10, 2_000_000, 60, 0}, {140, 120_000, 60, 0}, {180, 22_000, 60, 0}, {180, 120_000, 60, 1},
	} {
		j := job
		j.Iterations, j.Slow = c.iterations, map[int]uint64{2: uint64(c.slow)}
		files := j.Files()
		th := files[3].Thread(9, "looks at cores")
		for at := uint64(0); at < uint64(c.iterations*600_000+20*c.slow); at += 1_000_000 {
			th.RunDelay(at+1_000_000, 1_000_000, uint64(c.delayed)*10_000)
		}
		r := build(t, files...)
		if len(r.Findings) != c.want {
			t.Errorf("%+v: findings %+v", c, r.Findings)
		}
		if few := strings.Contains(strings.Join(r.Notes, "\n"), "for 60% of the time, 152 messages are needed to tell"); few != (c.delayed > 0 && c.iterations < 152) {
			t.Errorf("%+v: notes %q", c, r.Notes)
		}
	}
}

// Where a rank's process waits for cores, it may be the last of many collectives by chance.
func TestStragglerOnBusyCores(t *testing.T) {
	for _, c := range []struct{ late, lateIn, delayed, want int }{
		{60_000, 6, 0, 1}, {60_000, 5, 0, 0}, {10_000_000, 6, 60, 0}, {10_000_000, 10, 60, 1}, {2_500_000, 10, 60, 0}, {10_000_000, 10, 95, 1},
	} {
		j := job
		j.Iterations, j.Late, j.LateIn = 20, map[int]uint64{2: uint64(c.late)}, uint64(c.lateIn)
		files := j.Files()
		th := files[2].Thread(9, "looks at cores")
		for at := uint64(0); at < uint64(20*(600_000+c.late)); at += 1_000_000 {
			th.RunDelay(at+1_000_000, 1_000_000, uint64(c.delayed)*10_000)
		}
		r := build(t, files...)
		if len(r.Findings) != c.want || c.want > 0 && r.Findings[0].Kind != "straggler" {
			t.Errorf("%+v: findings %+v notes %q", c, r.Findings, r.Notes)
		}
	}
}

// A rank that is later than the clocks tell is not accused.
func TestClocksThatCannotTell(t *testing.T) {
	j := job
	j.Late = map[int]uint64{5: 60_000}
	j.Slow = map[int]uint64{2: 45_000}
	files := j.Files()
	for i, f := range files {
		if i%4 == 3 { // without the links between the machines there are no messages both ways
			files[i] = rectest.New(1, uint64(100+i), "node", byte(i/4+1), 0, 0)
		}
		_ = f
	}
	r := build(t, files...)
	for _, f := range r.Findings {
		if f.Kind == "straggler" {
			t.Errorf("%+v", f)
		}
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "error of the clocks is not known") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestText(t *testing.T) {
	j := job
	j.Late = map[int]uint64{5: 60_000}
	files := j.Files()
	th := files[7].Thread(9, "torn")
	th.Skip()
	th.Stop(1, 91_000_000)
	golden.File(t, "testdata/summary.txt", text(t, build(t, files...)))
}

// Hosts that give no identity: each rank stands alone, and no bandwidth is known.
func TestWithoutIdentity(t *testing.T) {
	j := job
	j.Version, j.Late = 2, map[int]uint64{5: 60_000}
	r := build(t, j.Files()...)
	if len(r.Communicators) != 8 || r.Communicators[0].Skew != nil || len(r.Findings) != 0 || r.Communicators[0].Operations[0].Bus != 0 {
		t.Errorf("%+v", r.Communicators[0])
	}
	if s := text(t, r); !strings.Contains(s, "rank 5; the host does not say which it is") {
		t.Error(s)
	}
}

// Sizes and bandwidths are those of nccl-tests.
func TestBandwidth(t *testing.T) {
	for _, c := range []struct {
		fn    string
		ranks uint64
		bytes uint64
		bus   float64
	}{
		{"AllReduce", 4, 4000, 4 * 2 * 3.0 / 4}, {"AllGather", 4, 16000, 16 * 3.0 / 4}, {"ReduceScatter", 4, 16000, 16 * 3.0 / 4},
		{"AlltoAll", 4, 16000, 16 * 3.0 / 4}, {"Broadcast", 4, 4000, 4}, {"Reduce", 4, 4000, 4}, {"AllReduce", 0, 4000, 0}, {"AllGather", 0, 4000, 0},
	} {
		f := rectest.New(2, 1, "n", 1, 0, 0)
		a := f.Thread(1, "t")
		a.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 1, A: 7, B: c.ranks << 32, C: 1 | 6<<32})
		coll := a.Start(format.Coll, 10, format.Record{Comm: 1, B: 1000, More: [7]uint64{f.Name(c.fn) | f.Name("ncclInt32")<<32}})
		a.Stop(coll, 11)
		op := a.Start(format.ProxyOp, 100, format.Record{Comm: 1, Parent: coll, A: 1})
		a.Stop(op, 1100)
		o := build(t, f).Communicators[0].Operations[0]
		if o.Bytes != c.bytes || o.Bus != c.bus || o.P50 != 1000 || o.TimedBy != "proxy" {
			t.Errorf("%s of %d ranks: %+v, want %d bytes, %g GB/s", c.fn, c.ranks, o, c.bytes, c.bus)
		}
	}
}

// What cannot be timed is counted as such.
func TestUntimed(t *testing.T) {
	f := rectest.New(2, 1, "n", 1, 0, 0)
	a := f.Thread(1, "t")
	a.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 1, A: 7, B: 2 << 32, C: 1 | 6<<32})
	call := a.Start(format.CollAPI, 5, format.Record{Comm: 1, Flags: 1})
	for _, up := range []uint64{0, call} {
		coll := a.Start(format.Coll, 10, format.Record{Comm: 1, Parent: up, B: 1000, More: [7]uint64{f.Name("AllReduce") | f.Name("ncclInt32")<<32}})
		a.Stop(coll, 11)
	}
	r := build(t, f)
	if o := r.Communicators[0].Operations[0]; o.Count != 2 || o.Untimed != 1 || o.Captured != 1 || o.P50 != 0 || o.Bus != 0 {
		t.Errorf("%+v", o)
	}
	if s := text(t, r); !strings.Contains(s, "1 in graphs, 1 without an end") {
		t.Error(s)
	}
}
