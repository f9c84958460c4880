package choose

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/collnet/schedule"
)

// cables joins the pairs.
func cables(n int, pairs ...[2]int) [][]bool {
	c := make([][]bool, n)
	for i := range c {
		c[i] = make([]bool, n)
	}
	for _, p := range pairs {
		c[p[0]][p[1]], c[p[1]][p[0]] = true, true
	}
	return c
}

func mesh(n int) [][]bool {
	var pairs [][2]int
	for a := range n {
		for b := range a {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	return cables(n, pairs...)
}

func ring(order ...int) [][]bool {
	var pairs [][2]int
	for i, r := range order {
		pairs = append(pairs, [2]int{r, order[(i+1)%len(order)]})
	}
	return cables(len(order), pairs...)
}

func fabric(n int, cabled [][]bool, p Path) Fabric { return Fabric{N: n, Cabled: cabled, Path: p} }

var (
	rdma = Path{5 * time.Microsecond, time.Microsecond, 12e9}
	slow = Path{5 * time.Microsecond, time.Microsecond, 3e9} // RDMA of which reductions keep up with several cables
	tcp  = Path{25 * time.Microsecond, time.Microsecond, 1.2e9}
)

func allReduce(n int, bytes int64) schedule.Op {
	return schedule.Op{Kind: schedule.AllReduce, N: n, Count: bytes / 4, Elem: 4, Acc: 4}
}

func TestPick(t *testing.T) {
	star := cables(5, [2]int{0, 1}, [2]int{0, 2}, [2]int{0, 3}, [2]int{0, 4})
	for _, c := range []struct {
		what   string
		fabric Fabric
		bytes  int64
		want   schedule.Algorithm
		order  []int
	}{
		{"two ranks, small", fabric(2, nil, tcp), 8, schedule.OneShot, nil},
		{"two ranks, large", fabric(2, nil, tcp), 64 << 20, schedule.Direct, nil},
		{"four ranks, small", fabric(4, nil, tcp), 8, schedule.OneShot, nil},
		{"four ranks, large", fabric(4, nil, tcp), 64 << 20, schedule.Direct, nil},
		{"four ranks on busy cores, where messages wait for each other", fabric(4, nil, Path{5 * time.Microsecond, 20 * time.Microsecond, 1.2e9}), 8, schedule.Doubling, nil},
		{"a mesh of three, large", fabric(3, mesh(3), rdma), 64 << 20, schedule.Direct, nil},
		{"a mesh of four, small", fabric(4, mesh(4), rdma), 1 << 10, schedule.OneShot, nil},
		{"64 ranks, small", fabric(64, nil, rdma), 8, schedule.Doubling, nil},
		{"64 ranks, large", fabric(64, nil, tcp), 256 << 20, schedule.Direct, nil},
		{"1,024 ranks, small", fabric(1024, nil, rdma), 8, schedule.Doubling, nil},
		{"1,024 ranks, large", fabric(1024, nil, rdma), 256 << 20, schedule.Halving, nil},
		{"a ring of four, small", fabric(4, ring(0, 2, 1, 3), rdma), 8, schedule.Doubling, []int{0, 2, 3, 1}},
		{"a ring of four, large", fabric(4, ring(0, 2, 1, 3), slow), 64 << 20, schedule.Matchings, []int{0, 2, 1, 3}},
		{"a ring of six, large", fabric(6, ring(0, 1, 2, 3, 4, 5), slow), 64 << 20, schedule.Rings, []int{0, 1, 2, 3, 4, 5}},
		{"a ring of five, small", fabric(5, ring(0, 4, 1, 3, 2), rdma), 8, schedule.Ring, []int{0, 2, 3, 1, 4}},
		{"a star: its cables are of no use", fabric(5, star, rdma), 64 << 20, schedule.Direct, nil},
		{"no cables", fabric(4, cables(4), tcp), 64 << 20, schedule.Direct, nil},
		{"one rank", fabric(1, nil, tcp), 64, schedule.OneShot, nil},
	} {
		if a, order := Of(c.fabric).Pick(allReduce(c.fabric.N, c.bytes)); a != c.want || !slices.Equal(order, c.order) {
			t.Errorf("%s: %v along %v, want %v along %v", c.what, a, order, c.want, c.order)
		}
	}
}

// What is picked has a plan, uses peers that a rank is connected to, and cables only if all choices do.
func TestPicksHavePlans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n := 1 + r.IntN(20)
		f := fabric(n, cables(n), []Path{rdma, tcp}[r.IntN(2)])
		for a := range n {
			for b := range a {
				joined := r.IntN(10) < 7
				f.Cabled[a][b], f.Cabled[b][a] = joined, joined
			}
		}
		c := Of(f)
		for k := schedule.AllReduce; k <= schedule.ReduceScatter; k++ {
			op := schedule.Op{Kind: k, N: n, Count: 1 << r.IntN(22), Elem: 2, Acc: 4}
			a, order := c.Pick(op)
			for op.Rank = range n {
				peers := c.Peers(op.Rank)
				for _, chunk := range schedule.Chunks(op, a, 1<<30) {
					p, err := schedule.Make(op, a, order, chunk)
					if err != nil {
						t.Fatal(err)
					}
					for _, round := range p.Rounds {
						for _, s := range round.Sends {
							if !slices.Contains(peers, s.To) || c.fabric.cabled() && !f.joins(op.Rank, s.To) {
								t.Fatalf("%v of %v over %v: rank %d sends to %d", k, a, f.Cabled, op.Rank, s.To)
							}
						}
					}
				}
			}
		}
	}
}

func TestCycle(t *testing.T) {
	petersen := cables(10)
	for i := range 5 {
		for _, p := range [][2]int{{i, (i + 1) % 5}, {i, i + 5}, {i + 5, (i+2)%5 + 5}} {
			petersen[p[0]][p[1]], petersen[p[1]][p[0]] = true, true
		}
	}
	lopsided := cables(16) // seven and nine, between which all cables are
	for a := range 7 {
		for b := 7; b < 16; b++ {
			lopsided[a][b], lopsided[b][a] = true, true
		}
	}
	long := rand.New(rand.NewPCG(2, 2)).Perm(100)
	two := ring(0, 1, 2, 3, 4, 5)
	for _, p := range [][2]int{{2, 3}, {5, 0}} {
		two[p[0]][p[1]], two[p[1]][p[0]] = false, false
	}
	for _, p := range [][2]int{{2, 0}, {5, 3}} {
		two[p[0]][p[1]], two[p[1]][p[0]] = true, true
	}
	for _, c := range []struct {
		what   string
		cabled [][]bool
		found  bool
	}{
		{"two ranks", mesh(2), false}, {"three", mesh(3), true}, {"a mesh of 16", mesh(16), true}, {"two triangles", two, false},
		{"Petersen's graph, which has none", petersen, false}, {"none between seven and nine", lopsided, false},
		{"a hundred in a ring", ring(long...), true}, {"a mesh of 17 is not searched", mesh(17), false},
	} {
		f := Fabric{N: len(c.cabled), Cabled: c.cabled}
		order := f.cycle()
		if (order != nil) != c.found {
			t.Errorf("%s: %v", c.what, order)
		}
		for i, r := range order {
			if next := order[(i+1)%len(order)]; !f.joins(r, next) {
				t.Errorf("%s: %d and %d are not joined", c.what, r, next)
			}
		}
	}
}

// Connections to everybody are made where there are few ranks only.
func TestPeersAreFew(t *testing.T) {
	for n, most := range map[int]int{1: 0, 2: 1, 3: 2, 64: 63, 65: 9, 1000: 12, 1024: 12} {
		c := Of(fabric(n, nil, tcp))
		for rank := range n {
			if got := c.Peers(rank); len(got) > most {
				t.Errorf("rank %d of %d has %d peers, not %d", rank, n, len(got), most)
			}
		}
	}
}

func TestLargerTakesLonger(t *testing.T) {
	for a := schedule.OneShot; a.Does(schedule.AllReduce, 4); a++ {
		for _, f := range []Fabric{fabric(4, nil, tcp), fabric(4, ring(0, 1, 2, 3), rdma)} {
			var before time.Duration
			for bytes := int64(8); bytes < 1<<32; bytes *= 4 {
				now := Time(allReduce(4, bytes), a, f)
				if now < before {
					t.Errorf("%v: %v for %d bytes, %v for less", a, now, bytes, before)
				}
				before = now
			}
		}
	}
}

// Within one node of many GPUs and over many nodes, the steps are those of NCCL.
func TestNCCLTimes(t *testing.T) {
	f := fabric(4, nil, Path{11 * time.Microsecond, time.Microsecond, 1e9})
	const us = time.Microsecond
	for _, c := range []struct {
		what  string
		of    func(schedule.Op, int, int, Fabric, Protocol) time.Duration
		ranks int
		p     Protocol
		bytes int64
		want  time.Duration
	}{
		{"six steps, of a tree with one GPU a node", RingTime, 4, LL, 8, 66 * us},
		{"of a ring with several, and 56 over NVLink", RingTime, 32, LL, 8, 6*8700*time.Nanosecond + 56*600*time.Nanosecond},
		{"bytes of LL128 are data but for 8 of 128", RingTime, 4, LL128, 1 << 20, 87*us + seconds(1.5*(1<<20)*128/120/1e9)},
		{"LL's lines are looked at", RingTime, 4, LL, 1 << 20, 66*us + seconds(3*(1<<20)*(1e-9+0.5e-9))},
		{"large", RingTime, 4, Simple, 1 << 30, 120*us + seconds(1.5*(1<<30)/1e9)},
		{"up and down two levels", TreeTime, 4, LL, 8, 4 * 11 * us},
		{"and 14 over NVLink", TreeTime, 32, LL128, 8, 58*us + 14*1250*time.Nanosecond},
		{"a small one is passed on whole, four times", TreeTime, 4, Simple, 64 << 10, 80*us + seconds(4*(64<<10)/1e9)},
		{"parts of a large one follow each other, up and down", TreeTime, 4, Simple, 1 << 30, 80*us + seconds((4*(512<<10)+2*(1<<30-512<<10))/1e9)},
	} {
		if got := c.of(allReduce(4, c.bytes), c.ranks, 4, f, c.p); got < c.want-us || got > c.want+us {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestOffloadTime(t *testing.T) {
	f := fabric(4, nil, tcp)
	for _, c := range []struct {
		bytes  int64
		fitted bool
		each   int64 // operation
		n      int64
	}{
		{8, false, 32 << 10, 1}, {8, true, 512, 1}, {1 << 20, true, 128 << 10, 8}, {64 << 20, false, 512 << 10, 128},
	} {
		one, all := allReduce(4, c.each), allReduce(4, c.each*c.n)
		a, _ := Of(f).Pick(one)
		cut := f
		if c.n > 1 {
			cut.Chunk = c.each
		}
		if got, want := Of(f).OffloadTime(allReduce(4, c.bytes), 4, 4, c.fitted), handover+Time(all, a, cut); got != want {
			t.Errorf("%d bytes, chunks fitted: %t: %v, want %v", c.bytes, c.fitted, got, want)
		}
	}
	if one, many := Of(f).OffloadTime(allReduce(4, 8), 4, 4, true), Of(f).OffloadTime(allReduce(4, 8), 32, 4, true); many-one != 14*chained {
		t.Errorf("%v with one GPU a node, %v with eight", one, many)
	}
}

// CollNetChain's pieces, as NCCL's own arithmetic has them; the first rows are those that 2.28.9 and 2.30.7 were seen to hand
// over, with one GPU a node and two channels.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		bytes   float64
		depth   int
		fitted  bool
		size, n float64
	}{
		{8, 1, false, 32 << 10, 1}, {4096, 1, false, 32 << 10, 1}, {64 << 10, 1, false, 64 << 10, 1}, {256 << 10, 1, false, 64 << 10, 4},
		{1 << 20, 1, false, 128 << 10, 8}, {4 << 20, 1, false, 256 << 10, 16}, {64 << 20, 1, false, 512 << 10, 128},
		{512 << 10, 1, false, 64 << 10, 8}, {640 << 10, 1, false, 128 << 10, 5}, {4<<20 - 1, 1, false, 256 << 10, 16},
		{8, 1, true, 512, 1}, {4096, 1, true, 4096, 1}, {40000, 1, true, 32 << 10, 2}, {1 << 20, 1, true, 128 << 10, 8},
		{64 << 10, 8, false, 32 << 10, 2},
	} {
		if size, n := piecesOf(c.bytes, c.depth, c.fitted); size != c.size || n != c.n {
			t.Errorf("%.0f bytes, %d GPUs a node: %.0f of %.0f, want %.0f of %.0f", c.bytes, c.depth, n, size, c.n, c.size)
		}
	}
}

// What copies the bytes computes nothing meanwhile.
func TestCopied(t *testing.T) {
	f := fabric(4, nil, slow)
	op := allReduce(4, 64<<20)
	a, _ := Of(f).Pick(op)
	apart := Time(op, a, f)
	f.Copied = true
	if together := Time(op, a, f); together <= apart {
		t.Errorf("%v where the CPU copies, %v where the card does", together, apart)
	}
}

func ExampleOf() {
	f := Fabric{N: 4, Cabled: ring(0, 2, 1, 3), Path: slow}
	c := Of(f)
	for _, bytes := range []int64{8, 1 << 20, 64 << 20} {
		a, order := c.Pick(allReduce(4, bytes))
		fmt.Println(bytes, a, order)
	}
	fmt.Println(c.Peers(0))
	// Output:
	// 8 doubling [0 2 3 1]
	// 1048576 matchings [0 2 1 3]
	// 67108864 matchings [0 2 1 3]
	// [2 3]
}
