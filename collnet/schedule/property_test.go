package schedule

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whoever computes an element, and in whatever chunk it lies: it has the same bits.
func TestResultsAreBitIdentical(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 7, 8, 13, 17} {
		jobs(n, func(j job) {
			if j.op.Kind == AllGather {
				return
			}
			j.op.Count, j.value = 401, noise
			for _, j.num = range []number{float, half} {
				j.chunk, j.place = 1<<20, nil
				want := j.outputs(t)
				for i, chunk := range []int64{1, 700, 128*int64(n) + 1} {
					j.chunk, j.place = chunk, places[i%len(places)]
					for r, got := range j.outputs(t) {
						if !bytes.Equal(got, want[r]) || j.op.Kind == AllReduce && !bytes.Equal(got, want[0]) {
							t.Fatalf("%v: rank %d has other bits", j, r)
						}
					}
				}
			}
		})
	}
}

// These sum in rank order, and round once.
func TestRankOrder(t *testing.T) {
	for _, a := range []Algorithm{OneShot, Direct} {
		for _, num := range []number{float, half} {
			for _, n := range []int{1, 2, 3, 8, 13} {
				j := job{op: Op{Kind: AllReduce, N: n, Count: 300}, a: a, num: num, chunk: 512, value: noise}
				j.check(t)
				if j.op.Kind = ReduceScatter; a.Does(ReduceScatter, n) {
					j.check(t)
				}
			}
		}
	}
}

// An all-gather and a reduce-scatter may be about any window of the parts.
func TestWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 2, 3, 4, 5, 8, 11} {
		jobs(n, func(j job) {
			if j.op.Kind == AllReduce {
				return
			}
			j.op.Count = 50
			for range 12 {
				all := int64(n) * j.op.Count
				off := r.Int64N(all)
				j.op.Window = Window{off, 1 + r.Int64N(all-off)}
				j.chunk, j.place = 64+r.Int64N(600)*int64(n), places[r.IntN(len(places))]
				j.check(t)
			}
		})
	}
}

// A wait costs time, and so no plan has one that it does not need.
func TestDrainsAreNeeded(t *testing.T) {
	some := 0
	for _, n := range []int{2, 3, 4, 5, 6, 8} {
		jobs(n, func(j job) {
			j.place = places[1]
			for _, j.op.Count = range []int64{1, 9, 100} {
				for _, c := range Chunks(j.of(0), j.a, j.chunk) {
					for rank := range n {
						some += j.drains(t, c, rank)
					}
				}
			}
		})
	}
	if some == 0 {
		t.Error("no plan waits")
	}
}

// drains counts those of a rank, none of which the plan can be without.
func (j job) drains(t *testing.T, c Chunk, rank int) (n int) {
	t.Helper()
	plans, err := j.plans(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plans[rank].Rounds {
		if !plans[rank].Rounds[i].Drain {
			continue
		}
		n++
		plans[rank].Rounds[i].Drain = false
		var ranks []*run
		for r, p := range plans {
			ranks = append(ranks, newMachine(j.of(r), j.num, j.value).start(p))
		}
		if simulate(ranks) == nil {
			t.Errorf("%v: rank %d need not wait in round %d", j, rank, i)
		}
		plans[rank].Rounds[i].Drain = true
	}
	return n
}

// The simulation finds what is wrong with a plan.
func TestSimulationFindsFaults(t *testing.T) {
	j := job{op: Op{Kind: AllReduce, N: 3, Count: 100}, a: Ring, num: float, value: noise, place: places[1]}
	for what, spoil := range map[string]func(p []Plan){
		"nothing":          nil,
		"message missing":  func(p []Plan) { p[1].Rounds[0].Sends = nil },
		"message too much": func(p []Plan) { p[1].Rounds[1].Recvs = nil },
		"other length":     func(p []Plan) { p[0].Rounds[1].Sends[0].Span.Len-- },
		"unwritten read":   func(p []Plan) { p[0].Rounds[0].Reduces[0].Src[0].Space = Scratch; p[0].Rounds[0].Recvs = nil },
		"scratch too small": func(p []Plan) {
			p[2].Scratch = 0
		},
		"no drain":    func(p []Plan) { p[1].Rounds[1].Drain = false },
		"early reuse": func(p []Plan) { p[0].Rounds[2].Recvs[0].Early = true },
	} {
		plans, err := j.plans(Chunks(j.of(0), j.a, 1<<20)[0])
		if err != nil {
			t.Fatal(err)
		}
		if spoil != nil {
			spoil(plans)
		}
		var ranks []*run
		for r, p := range plans {
			ranks = append(ranks, newMachine(j.of(r), j.num, j.value).start(p))
		}
		if err := simulate(ranks); (err == nil) != (spoil == nil) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Shares and chunks begin at lines, unless there are too few elements; they cover everything once.
func TestCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		elem, pieces, count := 1<<r.IntN(4), 1+r.Int64N(40), r.Int64N(2000)
		var at, least, most int64 = 0, 1 << 40, 0
		for i := range pieces {
			p := cut(count, elem, pieces, i)
			if p.off != at || p.n < 0 || p.n > 0 && p.off*int64(elem)%line != 0 {
				t.Fatalf("%d elements of %d bytes in %d pieces: %+v is the one at %d", count, elem, pieces, p, at)
			}
			at += p.n
			least, most = min(least, p.n), max(most, p.n)
		}
		if at != count || (most-least)*int64(elem) >= 2*line {
			t.Fatalf("%d elements of %d bytes in %d pieces: %d in all, from %d to %d", count, elem, pieces, at, least, most)
		}
	}
}

func TestChunksKeepTheirSize(t *testing.T) {
	jobs(6, func(j job) {
		j.op.Count = 10000
		for _, bytes := range []int64{1, 4096, 100000, 1 << 30} {
			for _, c := range Chunks(j.of(0), j.a, bytes) {
				var got int64
				for _, p := range j.of(0).pieces(j.a, c) {
					got += p.n * int64(j.num.elem)
				}
				if got == 0 || got > max(bytes, 2*6*line) {
					t.Errorf("%v: a chunk of %d bytes, not %d", j, got, bytes)
				}
			}
		}
	})
}

func TestMakeRefuses(t *testing.T) {
	good := Op{Kind: AllReduce, N: 3, Count: 5, Elem: 4, Acc: 4}
	for what, spoil := range map[string]func(op *Op, a *Algorithm, order *[]int){
		"rank":          func(op *Op, _ *Algorithm, _ *[]int) { op.Rank = 3 },
		"no rank":       func(op *Op, _ *Algorithm, _ *[]int) { op.N = 0 },
		"count":         func(op *Op, _ *Algorithm, _ *[]int) { op.Count = -1 },
		"elements":      func(op *Op, _ *Algorithm, _ *[]int) { op.Elem = 0 },
		"accumulator":   func(op *Op, _ *Algorithm, _ *[]int) { op.Acc = 2 },
		"window":        func(op *Op, a *Algorithm, _ *[]int) { op.Kind, *a, op.Window = AllGather, Ring, Window{10, 6} },
		"kind":          func(op *Op, _ *Algorithm, _ *[]int) { op.Kind = AllGather },
		"algorithm":     func(_ *Op, a *Algorithm, _ *[]int) { *a = algorithms },
		"order":         func(_ *Op, _ *Algorithm, order *[]int) { *order = []int{0, 1, 1} },
		"short order":   func(_ *Op, _ *Algorithm, order *[]int) { *order = []int{0, 1} },
		"strange order": func(_ *Op, _ *Algorithm, order *[]int) { *order = []int{0, 1, 3} },
	} {
		op, a, order := good, OneShot, slices.Clone([]int{0, 1, 2})
		spoil(&op, &a, &order)
		if p, err := Make(op, a, order, Chunk{0, 5}); err == nil || p.Rounds != nil {
			t.Errorf("%s: %v, %v", what, p, err)
		}
	}
}

// Halving sums as Doubling does, and Direct as OneShot: where one takes the place of the other by size, no bit changes.
func TestAlgorithmsAgree(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7, 8, 13} {
		for _, pair := range [][2]Algorithm{{OneShot, Direct}, {Doubling, Halving}} {
			j := job{op: Op{Kind: AllReduce, N: n, Count: 333}, num: float, chunk: 512, value: noise}
			j.a = pair[0]
			one := j.outputs(t)
			j.a = pair[1]
			if other := j.outputs(t); !bytes.Equal(one[0], other[0]) {
				t.Errorf("%d ranks: %v and %v differ", n, pair[0], pair[1])
			}
			j.a = Ring
			if other := j.outputs(t); n > 2 && bytes.Equal(one[0], other[0]) {
				t.Errorf("%d ranks: the sums of this test do not depend on their order", n)
			}
		}
	}
}

func FuzzPlans(f *testing.F) {
	for a := range algorithms {
		f.Add(uint8(a), uint8(a), uint8(3+a), uint16(50), uint16(0), uint16(20), uint16(300), uint64(a), uint8(a))
		f.Add(uint8(a), uint8(2), uint8(3), uint16(200), uint16(7), uint16(90), uint16(64), uint64(5), uint8(1))
	}
	f.Fuzz(func(t *testing.T, a, kind, ranks uint8, count, off, length, chunk uint16, seed uint64, form uint8) {
		n := 1 + int(ranks)%20
		r := rand.New(rand.NewPCG(seed, 0))
		j := job{op: Op{Kind: Kind(kind % 3), N: n, Count: int64(count % 400)}, a: Algorithm(a) % algorithms, order: r.Perm(n), value: small}
		j.num = []number{whole, whole, float, half}[form%4]
		j.chunk = max(int64(chunk), 16)
		j.place = func(rank int) bool { return seed>>(rank%64)&1 != 0 }
		if all := int64(n) * j.op.Count; j.op.Kind != AllReduce && all > 0 {
			j.op.Window.Off = int64(off) % all
			j.op.Window.Len = min(int64(length)+1, all-j.op.Window.Off)
		}
		if !j.a.Does(j.op.Kind, n) {
			return
		}
		if j.op.Kind == AllGather || j.num.name == whole.name {
			j.check(t)
			return
		}
		j.value = noise
		first := j.outputs(t)
		j.chunk, j.place = 1<<20, nil
		for rank, other := range j.outputs(t) {
			if !bytes.Equal(first[rank], other) || j.op.Kind == AllReduce && !bytes.Equal(first[0], other) {
				t.Fatalf("%v: rank %d has other bits", j, rank)
			}
		}
	})
}
