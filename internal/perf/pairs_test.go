package perf

import (
	"fmt"
	"testing"
)

// places are n machines with so many ports each.
func places(n, ports int) []Place {
	var all []Place
	for i := range n {
		p := Place{Host: fmt.Sprintf("node%d", i), Boot: fmt.Sprint(i), Tables: []string{"ncclNetPlugin_v9"}}
		for d := range ports {
			p.Devices = append(p.Devices, Device{fmt.Sprintf("mlx5_%d", d), 100_000})
		}
		all = append(all, p)
	}
	return all
}

// In a matrix every two ports of different ranks are measured once each way, and no machine is in two pairs of a batch.
func TestMatrixOfPairs(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for _, ports := range []int{1, 3} {
			for _, all := range []bool{false, true} {
				o := Options{Matrix: true, AllPorts: all}
				batches, err := o.batches(places(n, ports))
				if err != nil {
					t.Fatal(err)
				}
				seen := map[Pair]int{}
				for _, b := range batches {
					busy := map[int]bool{}
					for _, p := range b {
						if busy[p.From.Rank] || busy[p.To.Rank] || p.From.Rank == p.To.Rank {
							t.Errorf("%d ranks: %v is in a batch with itself: %v", n, p, b)
						}
						busy[p.From.Rank], busy[p.To.Rank] = true, true
						seen[p]++
					}
				}
				want := n * (n - 1) * ports
				if all {
					want *= ports
				}
				if len(seen) != want {
					t.Errorf("%d ranks of %d ports, all %t: %d pairs, want %d", n, ports, all, len(seen), want)
				}
				for p, times := range seen {
					if times != 1 || !all && p.From.Device != p.To.Device {
						t.Errorf("%v is measured %d times", p, times)
					}
				}
				if least := (n - 1 + n%2) * 2 * ports; !all && len(batches) != least {
					t.Errorf("%d ranks of %d ports take %d batches, want %d", n, ports, len(batches), least)
				}
			}
		}
	}
}

// Ranks of one machine take turns.
func TestPairsOfOneMachine(t *testing.T) {
	all := places(4, 1)
	for i := range all {
		all[i].Boot = "same"
	}
	o := Options{Matrix: true}
	batches, err := o.batches(all)
	if err != nil || len(batches) != 12 {
		t.Errorf("%d batches, %v", len(batches), err)
	}
}

func TestPairsOfHalves(t *testing.T) {
	batches, err := new(Options).batches(places(4, 2))
	if err != nil || fmt.Sprint(batches) != "[[{{2 0} {0 0}} {{3 0} {1 0}}]]" {
		t.Errorf("%v, %v", batches, err)
	}
	if _, err := new(Options).batches(places(3, 2)); err == nil {
		t.Error("three ranks are paired")
	}
}
