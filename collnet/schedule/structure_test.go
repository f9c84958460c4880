package schedule

import (
	"fmt"
	"hash/maphash"
	"testing"
)

type end struct {
	round, from, to, nth int
	bytes                int64
}

// Many ranks: their messages have two ends alike, and no plan is longer than its algorithm says.
func TestStructureOfManyRanks(t *testing.T) {
	for _, n := range []int{100, 128, 257, 1023, 1024} {
		seed := maphash.MakeSeed()
		jobs(n, func(j job) {
			if n > 257 && (j.order != nil || j.a == Rings) || n == 1023 && j.a != Doubling && j.a != Halving {
				return
			}
			j.op.Count = 40
			if j.op.Kind == AllReduce {
				j.op.Count = 8*int64(n) + 3
			}
			chunks := Chunks(j.of(0), j.a, 1<<30)
			if len(chunks) != 1 {
				t.Fatalf("%v: %d chunks", j, len(chunks))
			}
			var sent, received uint64 // sums over all ends
			for rank := range n {
				p, err := Make(j.of(rank), j.a, j.order, chunks[0])
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Rounds) > rounds(j.a, j.op.Kind, n) {
					t.Fatalf("%v: %d rounds", j, len(p.Rounds))
				}
				for i, r := range p.Rounds {
					nth := map[int]int{}
					for _, s := range r.Sends {
						sent += maphash.Comparable(seed, end{i, rank, s.To, nth[s.To], s.Span.Len})
						nth[s.To]++
					}
					clear(nth)
					for _, v := range r.Recvs {
						received += maphash.Comparable(seed, end{i, v.From, rank, nth[v.From], v.Span.Len})
						nth[v.From]++
					}
				}
			}
			if sent != received || sent == 0 {
				t.Errorf("%v: messages have one end only", j)
			}
		})
	}
}

// rounds is how many an algorithm may have.
func rounds(a Algorithm, k Kind, n int) int {
	log, guests := 0, 0
	for 2<<log <= n {
		log++
	}
	if n > 1<<log {
		guests = 2
	}
	per := map[Algorithm]int{OneShot: 1, Doubling: log + guests, Direct: 1, Halving: log + guests, Ring: n - 1, Rings: n - 1, Matchings: 2}[a]
	switch {
	case k != AllReduce || a == OneShot || a == Doubling:
		return per
	case a == Halving:
		return 2*log + guests
	}
	return 2 * per
}

// Peers of the algorithms for many ranks are few.
func TestPeers(t *testing.T) {
	for _, n := range []int{2, 3, 4, 9, 64, 100, 1000, 1024} {
		for _, a := range []Algorithm{Doubling, Halving, Ring, Rings} {
			most := 0
			links := map[[2]int]bool{}
			for rank := range n {
				peers := Peers(a, n, rank, nil)
				most = max(most, len(peers))
				for _, p := range peers {
					links[[2]int{rank, p}] = true
				}
			}
			for l := range links {
				if !links[[2]int{l[1], l[0]}] || l[0] == l[1] {
					t.Errorf("%v of %d ranks: %d has %d as a peer", a, n, l[0], l[1])
				}
			}
			if limit := rounds(Doubling, AllReduce, 1024) + 1; most > limit || most == 0 {
				t.Errorf("%v of %d ranks: %d peers", a, n, most)
			}
		}
	}
}

// On a ring of four these use its cables only.
func TestCablesOfARingOfFour(t *testing.T) {
	ring := []int{2, 0, 3, 1}
	for _, c := range []struct {
		a     Algorithm
		order []int
	}{{Ring, ring}, {Rings, ring}, {Matchings, ring}, {Doubling, Square(ring)}, {Halving, Square(ring)}} {
		for i, rank := range ring {
			want := map[int]bool{ring[(i+1)%4]: true, ring[(i+3)%4]: true}
			peers := Peers(c.a, 4, rank, c.order)
			if len(peers) != 2 || !want[peers[0]] || !want[peers[1]] {
				t.Errorf("%v: rank %d has %v as peers", c.a, rank, peers)
			}
		}
	}
}

// Both matchings are in use in every round: each rank sends to both its neighbours at once.
func TestMatchingsUseBothCables(t *testing.T) {
	op := Op{Kind: AllReduce, N: 4, Count: 4096, Elem: 4, Acc: 4}
	p, err := Make(op, Matchings, nil, Chunks(op, Matchings, 1<<20)[0])
	if err != nil || len(p.Rounds) != 4 {
		t.Fatalf("%d rounds, %v", len(p.Rounds), err)
	}
	for i, r := range p.Rounds {
		if len(r.Sends) != 2 || r.Sends[0].To == r.Sends[1].To || r.Sends[0].Span.Len != r.Sends[1].Span.Len {
			t.Errorf("round %d: %+v", i, r.Sends)
		}
	}
}

func ExampleMake() {
	op := Op{Kind: AllReduce, N: 3, Rank: 1, Count: 48, Elem: 4, Acc: 4}
	for _, c := range Chunks(op, Direct, 1<<20) {
		p, _ := Make(op, Direct, nil, c)
		for i, r := range p.Rounds {
			for _, s := range r.Sends {
				fmt.Println("round", i, "sends", s.Span.Len, "bytes to", s.To)
			}
			for _, v := range r.Recvs {
				fmt.Println("round", i, "receives", v.Span.Len, "bytes of", v.From)
			}
			for _, d := range r.Reduces {
				fmt.Println("round", i, "reduces", d.Count, "elements of", len(d.Src))
			}
		}
	}
	// Output:
	// round 0 sends 64 bytes to 2
	// round 0 sends 64 bytes to 0
	// round 0 receives 64 bytes of 2
	// round 0 receives 64 bytes of 0
	// round 0 reduces 16 elements of 3
	// round 1 sends 64 bytes to 2
	// round 1 sends 64 bytes to 0
	// round 1 receives 64 bytes of 2
	// round 1 receives 64 bytes of 0
}
