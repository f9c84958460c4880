package perf

import (
	"errors"
	"fmt"
	"slices"
)

// Port is one device of one rank.
type Port struct {
	Rank   int `json:"rank"`
	Device int `json:"device"`
}

// Pair is a way to measure: from the port that sends to the one that receives.
type Pair struct {
	From Port `json:"from"`
	To   Port `json:"to"`
}

// batches are the pairs to measure, those of one batch at the same time.
func (o *Options) batches(places []Place) ([][]Pair, error) {
	n := len(places)
	if !o.Matrix {
		if n%2 != 0 {
			return nil, fmt.Errorf("there are %d ranks, and half of them send to the other half", n)
		}
		var b []Pair
		for i := range n / 2 {
			b = append(b, Pair{Port{i + n/2, places[i+n/2].Chosen}, Port{i, places[i].Chosen}})
		}
		return [][]Pair{b}, nil
	}
	var all [][]Pair
	for _, round := range tournament(n) {
		all = append(all, apart(places, round, o.AllPorts)...)
	}
	if len(all) == 0 {
		return nil, errors.New("no two ports have one number: --ports all pairs every port with every other")
	}
	return all, nil
}

// tournament has every two of n meet once: in each of its rounds nobody is in two pairs. (The circle method: the last stays, the
// others move on by one.)
func tournament(n int) [][][2]int {
	m := n + n%2 // with a place that is empty
	var rounds [][][2]int
	for r := range m - 1 {
		var round [][2]int
		for i := range m / 2 {
			a, b := (r+i)%(m-1), (r+m-1-i)%(m-1)
			if i == 0 {
				b = m - 1
			}
			if a < n && b < n {
				round = append(round, [2]int{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// apart makes batches of one round's pairs of ranks, both ways and for all ports: a batch has no machine twice, so that pairs do not
// disturb each other where the network does not join them.
func apart(places []Place, round [][2]int, allPorts bool) [][]Pair {
	var pairs []Pair
	for _, p := range round {
		for a := range places[p[0]].Devices {
			for b := range places[p[1]].Devices {
				if a == b || allPorts {
					x, y := Port{p[0], a}, Port{p[1], b}
					pairs = append(pairs, Pair{x, y}, Pair{y, x})
				}
			}
		}
	}
	var all [][]Pair
	for len(pairs) > 0 {
		used := map[string]bool{}
		var batch []Pair
		pairs = slices.DeleteFunc(pairs, func(p Pair) bool {
			from, to := places[p.From.Rank].Boot, places[p.To.Rank].Boot
			if used[from] || used[to] {
				return false
			}
			used[from], used[to] = true, true
			batch = append(batch, p)
			return true
		})
		all = append(all, batch)
	}
	return all
}
