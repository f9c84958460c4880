package choose

import (
	"math/bits"

	"weft/collnet/schedule"
)

// cost is what an operation has the busiest rank do.
type cost struct {
	rounds   float64
	messages float64 // sent
	sent     float64 // bytes of them
	reduced  float64 // bytes that reductions read
	links    float64 // cables that carry the bytes at the same time, if each pair of ranks has one
}

// costOf counts what the plans of an algorithm have, as if shares were even.
func costOf(op schedule.Op, a schedule.Algorithm) cost {
	n := float64(op.N)
	if op.N == 1 {
		return cost{links: 1}
	}
	all := total(op)
	wide := float64(op.Acc) / float64(op.Elem)
	scatter := cost{reduced: all} // of Direct: its inputs in rank order
	gather := cost{}
	switch a {
	case schedule.OneShot:
		return cost{1, n - 1, (n - 1) * all, n * all, n - 1}
	case schedule.Direct:
		scatter = cost{1, n - 1, all * (n - 1) / n, all, n - 1}
		gather = cost{1, n - 1, all * (n - 1) / n, 0, n - 1}
	case schedule.Doubling, schedule.Halving, schedule.Matchings:
		return cubed(op, a, all, wide)
	case schedule.Ring, schedule.Rings:
		ways := 1.0
		if a == schedule.Rings {
			ways = 2
		}
		each := all / n
		scatter = cost{n - 1, ways * (n - 1), each * (1 + float64(wide*(n-2))), float64(each * (2 + float64((n-2)*2*wide))), ways}
		if wide > 1 {
			scatter.reduced += float64(each * (n - 2)) // widened first
		}
		gather = cost{n - 1, ways * (n - 1), each * (n - 1), 0, ways}
	}
	return of(op.Kind, scatter, gather)
}

// of adds what a kind has.
func of(k schedule.Kind, scatter, gather cost) cost {
	switch k {
	case schedule.AllGather:
		return gather
	case schedule.ReduceScatter:
		return scatter
	}
	return cost{scatter.rounds + gather.rounds, scatter.messages + gather.messages, scatter.sent + gather.sent, scatter.reduced + gather.reduced, scatter.links}
}

// cubed are the costs of exchanges by halves. With guests, the way of their data is the longest.
func cubed(op schedule.Op, a schedule.Algorithm, all, wide float64) cost {
	log := float64(bits.Len(uint(op.N)) - 1)
	corners := float64(int(1) << int(log))
	guests := float64(op.N) > corners
	first := 1.0 // the bytes of the first exchange for each of the sum
	if guests {
		first = wide
	}
	ways := 1.0
	if a == schedule.Matchings {
		ways = 2
	}
	halves := float64(first/2) + float64(wide*(0.5-1/corners))
	scatter := cost{log, ways * log, all * halves, 2 * all * halves, ways}
	gather := cost{log, ways * log, all * (1 - 1/corners), 0, ways}
	if a == schedule.Doubling {
		each := first + float64(wide*(log-1))
		scatter = cost{log, log, all * each, 2 * all * each, 1}
		gather = cost{}
	}
	sum := of(op.Kind, scatter, gather)
	if !guests {
		return sum
	}
	part := all / float64(op.N)
	in, out := all, all // what a guest sends its host, and has of it
	switch op.Kind {
	case schedule.AllGather:
		in, out = part, all-part
	case schedule.ReduceScatter:
		out = part
	}
	sum.rounds += 2
	sum.messages += 2
	sum.sent += in + out
	if op.Kind != schedule.AllGather {
		sum.reduced += 2 * all
	}
	return sum
}

// total is the bytes of the large buffer.
func total(op schedule.Op) float64 {
	n := op.Count
	if op.Kind != schedule.AllReduce {
		if n *= int64(op.N); op.Window.Len > 0 {
			n = op.Window.Len
		}
	}
	return float64(n * int64(op.Elem))
}
