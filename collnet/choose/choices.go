package choose

import (
	"slices"
	"time"

	"weft/collnet/schedule"
)

// mostMeshed is for how many ranks everybody may have a connection to everybody; beyond, to O(log N).
const mostMeshed = 64

// Choices are the algorithms that a fabric carries. They are found once, when a
// communicator is set up, and tell it to whom it must be connected.
type Choices struct {
	fabric Fabric
	all    []choice
}

type choice struct {
	algorithm schedule.Algorithm
	order     []int
}

// Of finds what a fabric carries: what uses its cables only, or, if there are none or too few for that, all.
func Of(f Fabric) Choices {
	c := Choices{fabric: f}
	meshed := []choice{{schedule.OneShot, nil}, {schedule.Direct, nil}}
	if f.N > mostMeshed {
		meshed = nil
	}
	cubes := []choice{{schedule.Doubling, nil}, {schedule.Halving, nil}}
	if f.cabled() {
		candidates := slices.Concat(meshed, cubes)
		if ring := f.cycle(); ring != nil {
			candidates = append(candidates, choice{schedule.Ring, ring}, choice{schedule.Rings, ring})
			if f.N == 4 {
				square := schedule.Square(ring)
				candidates = append(candidates, choice{schedule.Doubling, square}, choice{schedule.Halving, square}, choice{schedule.Matchings, ring})
			}
		}
		for _, one := range candidates {
			if f.carries(one.algorithm, one.order) {
				c.all = append(c.all, one)
			}
		}
	}
	for kind := schedule.AllReduce; kind <= schedule.ReduceScatter; kind++ {
		if !slices.ContainsFunc(c.all, func(one choice) bool { return one.algorithm.Does(kind, f.N) }) {
			c.fabric.Cabled = nil
			c.all = slices.Concat(meshed, cubes, []choice{{schedule.Ring, nil}})
			break
		}
	}
	return c
}

// Pick returns the algorithm that is expected to take least, and the order of the ranks in it.
func (c Choices) Pick(op schedule.Op) (schedule.Algorithm, []int) {
	var best choice
	var least time.Duration = -1
	for _, one := range c.all {
		if !one.algorithm.Does(op.Kind, op.N) {
			continue
		}
		if t := Time(op, one.algorithm, c.fabric); least < 0 || t < least {
			best, least = one, t
		}
	}
	return best.algorithm, best.order
}

// Peers are all ranks with which any of the algorithms has a rank exchange messages, from the lowest up.
func (c Choices) Peers(rank int) []int {
	var all []int
	for _, one := range c.all {
		all = append(all, schedule.Peers(one.algorithm, c.fabric.N, rank, one.order)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
