package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// drawing says what faults are drawn from.
type drawing struct {
	seed                      uint64
	kinds, networks, programs []string
}

// fault is one that is drawn.
type fault struct {
	kind     *kind
	network  string
	program  string
	ranks    int
	rank     int
	dir      string
	after    time.Duration // the job runs before
	seed     uint64
	sequence int
}

func (f fault) String() string {
	where := fmt.Sprintf("rank %d of %d", f.rank, f.ranks)
	if f.dir != "" {
		where += ", what it " + map[string]string{tx: "sends", rx: "receives"}[f.dir]
	}
	return fmt.Sprintf("%d: %s, %s over %s: %s", f.sequence, f.kind.name, f.program, f.network, where)
}

// faults draws so many: each kind as often as the others, over each network that it can be on.
func (d *drawing) faults(n int) ([]fault, error) {
	_, some, err := released()
	if err != nil {
		return nil, err
	}
	wanted := func(list []string, one string) bool { return list == nil || slices.Contains(list, one) }
	var all [][]fault
	for i := range kinds {
		k := &kinds[i]
		var of []fault
		for _, on := range k.on {
			if wanted(d.kinds, k.name) && wanted(d.networks, on.network) && wanted(d.programs, on.program) && (some || on.program != "NCCL") {
				of = append(of, fault{kind: k, network: on.network, program: on.program})
			}
		}
		if of != nil {
			all = append(all, of)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("no fault is of kinds %v, networks %v and programs %v", d.kinds, d.networks, d.programs)
	}
	rng := rand.New(rand.NewPCG(d.seed, 0))
	var out []fault
	for i := range n {
		of := all[i%len(all)]
		f := of[i/len(all)%len(of)]
		f.sequence, f.seed = i+1, rng.Uint64()
		f.ranks = 3 + rng.IntN(2)
		f.rank = rng.IntN(f.ranks)
		f.after = time.Second + time.Duration(rng.IntN(2000))*time.Millisecond
		if f.kind.directed {
			f.dir = []string{tx, rx}[rng.IntN(2)]
		}
		out = append(out, f)
	}
	return out, nil
}
