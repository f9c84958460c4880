package collnet

import (
	"reflect"
	"testing"
	"time"

	"weft/collnet/choose"
)

func TestFabricOfFacts(t *testing.T) {
	path := func(us, gap int, gbs float64) choose.Path {
		return choose.Path{Latency: time.Duration(us) * time.Microsecond, Gap: time.Duration(gap) * time.Microsecond, Bandwidth: gbs * 1e9}
	}
	for _, c := range []struct {
		name   string
		paths  []choose.Path
		cabled [][]bool // as each rank says it
		apart  bool     // not all ranks are known to each other
		want   choose.Path
		fabric [][]bool
		card   bool // RDMA joins the whole ring, so that no bytes are copied
	}{
		{name: "the median counts, of each on its own",
			paths:  []choose.Path{path(9, 1, 7), path(3, 2, 90), path(5, 8, 8)},
			cabled: [][]bool{{false, false, false}, {false, false, false}, {false, false, false}},
			want:   path(5, 2, 8), fabric: [][]bool{{false, false, false}, {false, false, false}, {false, false, false}}},
		{name: "a cable that one side does not know is none",
			paths:  []choose.Path{path(1, 1, 1), path(1, 1, 1), path(1, 1, 1)},
			cabled: [][]bool{{false, true, true}, {true, false, false}, {false, false, false}},
			want:   path(1, 1, 1), fabric: [][]bool{{false, true, false}, {true, false, false}, {false, false, false}}},
		{name: "all alike are a network",
			paths:  []choose.Path{path(1, 1, 1), path(2, 1, 1)},
			cabled: [][]bool{{false, true}, {true, false}},
			want:   path(2, 1, 1), card: true},
		{name: "ranks that do not know all others",
			paths:  []choose.Path{path(1, 1, 1), path(1, 1, 1), path(1, 1, 1)},
			cabled: [][]bool{{false, true, false}, {true, false, false}, {false, false, false}},
			apart:  true,
			want:   path(1, 1, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := len(c.paths)
			all := make([]facts, n)
			for r := range all { // as they go around the ring
				b := make([]byte, factsSize(n))
				for i := range b {
					b[i] = 0xff
				}
				facts{path: c.paths[r], cabled: c.cabled[r]}.put(b)
				all[r] = readFacts(b, n)
			}
			f := fabricOf(all, !c.apart)
			if f.N != n || f.Path != c.want || f.Copied == c.card || !reflect.DeepEqual(f.Cabled, c.fabric) {
				t.Errorf("%d ranks, %+v, cabled %v, copied: %t; want %+v, %v, copied: %t", f.N, f.Path, f.Cabled, f.Copied, c.want, c.fabric, !c.card)
			}
		})
	}
}
