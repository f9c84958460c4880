package schedule

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// noise is a value of each element of each rank, whose sums depend on their order.
func noise(rank int, i int64) float64 {
	h := uint64(rank)<<32 ^ uint64(i) ^ 0x9e3779b97f4a7c15
	for range 3 {
		h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	}
	return float64(int32(h)) / float64(int64(1)<<(h>>60))
}

func small(rank int, i int64) float64 { return float64((i*31+int64(rank)*7)%1000 - 500) }

// job is an operation as a test runs it on all ranks.
type job struct {
	op    Op // of rank 0
	a     Algorithm
	order []int
	num   number
	chunk int64
	place func(rank int) bool // whose buffers are one
	value func(rank int, i int64) float64
}

func (j job) String() string {
	return fmt.Sprintf("%v %v, %d ranks in order %v, %d %s, window %+v, chunks of %d bytes", j.a, j.op.Kind, j.op.N, j.order, j.op.Count, j.num.name, j.op.Window, j.chunk)
}

func (j job) of(rank int) Op {
	op := j.op
	op.Rank, op.Elem, op.Acc = rank, j.num.elem, j.num.acc
	op.InPlace = j.place != nil && j.place(rank)
	return op
}

// plans are those of all ranks for a chunk, held to what every plan keeps.
func (j job) plans(c Chunk) ([]Plan, error) {
	plans := make([]Plan, j.op.N)
	for r := range plans {
		p, err := Make(j.of(r), j.a, j.order, c)
		if err != nil {
			return nil, err
		}
		peers := Peers(j.a, j.op.N, r, j.order)
		for _, round := range p.Rounds {
			for _, s := range round.Sends {
				if !slices.Contains(peers, s.To) {
					return nil, fmt.Errorf("rank %d sends to %d, its peers are %v", r, s.To, peers)
				}
			}
			for _, v := range round.Recvs {
				if !slices.Contains(peers, v.From) {
					return nil, fmt.Errorf("rank %d receives from %d, its peers are %v", r, v.From, peers)
				}
			}
		}
		plans[r] = p
	}
	return plans, nil
}

// outputs runs a job, and returns what each rank has in the end.
func (j job) outputs(t *testing.T) [][]byte {
	t.Helper()
	machines := make([]*machine, j.op.N)
	for r := range machines {
		machines[r] = newMachine(j.of(r), j.num, j.value)
	}
	for _, c := range Chunks(j.of(0), j.a, j.chunk) {
		plans, err := j.plans(c)
		if err != nil {
			t.Fatalf("%v: %v", j, err)
		}
		ranks := make([]*run, j.op.N)
		for r, m := range machines {
			ranks[r] = m.start(plans[r])
		}
		if err := simulate(ranks); err != nil {
			t.Fatalf("%v: chunk %+v: %v", j, c, err)
		}
	}
	all := make([][]byte, j.op.N)
	for r, m := range machines {
		if i := slices.Index(m.output.written, false); i >= 0 {
			t.Fatalf("%v: rank %d: nobody wrote byte %d of the output", j, r, i)
		}
		all[r] = m.output.bytes
	}
	return all
}

// result is what an operation gives, element by element, where a rank has them; sums in rank order.
func (j job) result(rank int) []byte {
	op := j.of(rank)
	from, n := op.window().Off, op.window().Len
	switch op.Kind {
	case AllReduce:
		from, n = 0, op.Count
	case ReduceScatter:
		off, part := op.part(rank)
		from, n = from+off, part
	}
	out := make([]byte, n*int64(op.Elem))
	b := make([]byte, op.Elem)
	read := func(r int, i int64) float64 { // as the type has it
		j.num.put(b, false, j.value(r, i))
		return j.num.get(b, false)
	}
	for i := range n {
		var v float64
		if op.Kind == AllGather {
			v = read(int((from+i)/op.Count), from+i)
		} else {
			v = read(0, from+i)
			for r := 1; r < op.N; r++ {
				v = j.num.add(v, read(r, from+i))
			}
		}
		j.num.put(out[i*int64(op.Elem):], false, v)
	}
	return out
}

func (j job) check(t *testing.T) [][]byte {
	t.Helper()
	all := j.outputs(t)
	var want []byte
	for r, got := range all {
		if want == nil || j.op.Kind == ReduceScatter {
			want = j.result(r)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%v: rank %d has %x, want %x", j, r, got, want)
		}
	}
	return all
}

var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64}

func counts(n int) []int64 {
	return []int64{0, 1, int64(n - 1), int64(n), int64(n + 1), 333}
}

// jobs calls with every algorithm and kind that there is, for so many ranks, in an order of ranks that is not their own.
func jobs(n int, with func(j job)) {
	order := rand.New(rand.NewPCG(uint64(n), 2)).Perm(n)
	for a := range algorithms {
		for k := AllReduce; k <= ReduceScatter; k++ {
			if !a.Does(k, n) {
				continue
			}
			j := job{op: Op{Kind: k, N: n}, a: a, num: whole, chunk: 1 << 20, value: small}
			with(j)
			j.order = order
			with(j)
		}
	}
}

// Sums of int are exact: every algorithm has the one result. Small jobs are run in all their forms, large ones in some.
func TestResultsAreRight(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range sizes {
		jobs(n, func(j job) {
			for _, j.op.Count = range counts(n) {
				for _, chunk := range []int64{1 << 20, 256} {
					for _, place := range places {
						if n > 8 && r.IntN(n) > 2 {
							continue
						}
						j.chunk, j.place = chunk*int64(n), place
						j.check(t)
					}
				}
			}
		})
	}
}

// places say whose buffers are one; ranks need not agree.
var places = []func(rank int) bool{nil, func(int) bool { return true }, func(rank int) bool { return rank%3 == 1 }}
