package schedule

import (
	"errors"
	"fmt"
	"slices"
)

// Make returns what a rank does for a chunk. Order is where ranks stand, in
// the ring or in the cube; nil: one after the other. Number and length of messages
// between two ranks are the same in the plans of both, round by round.
func Make(op Op, a Algorithm, order []int, c Chunk) (Plan, error) {
	if err := errors.Join(op.check(), fits(a, op), permutes(order, op.N)); err != nil {
		return Plan{}, fmt.Errorf("%v of %v: %w", op.Kind, a, err)
	}
	b := &builder{op: op}
	pieces := op.pieces(a, c)
	order = inOrder(op.N, order)
	switch {
	case op.N == 1:
		b.alone(pieces)
	case a == OneShot:
		b.oneShot(pieces[0])
	case a == Doubling:
		b.doubling(newCube(order, op.Rank), pieces[0])
	case a == Direct:
		b.direct(pieces)
	case a == Halving:
		b.halvingOf(order, pieces)
	case a == Ring:
		b.ring(order, pieces)
	case a == Rings:
		b.rings(order, pieces)
	case a == Matchings:
		b.matchings(order, pieces)
	}
	b.drain()
	return b.plan, nil
}

// Peers are the ranks with which a rank exchanges messages, from the lowest up.
func Peers(a Algorithm, n, rank int, order []int) []int {
	order = inOrder(n, order)
	var peers []int
	switch a {
	case OneShot, Direct:
		peers = slices.Clone(order)
	case Doubling, Halving:
		peers = newCube(order, rank).peers()
	case Ring, Rings, Matchings:
		peers = ringPeers(order, rank)
	}
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(r int) bool { return r == rank })
}

// alone is a plan of one rank.
func (b *builder) alone(pieces []piece) {
	for _, p := range pieces {
		if r := b.round(0); !b.op.InPlace && p.n > 0 {
			r.Copies = append(r.Copies, Copy{b.large(Output, p), b.large(Input, p)})
		}
	}
}

func fits(a Algorithm, op Op) error {
	if !a.Does(op.Kind, op.N) {
		return fmt.Errorf("there is no such plan for %d ranks", op.N)
	}
	return nil
}

func permutes(order []int, n int) error {
	if order == nil {
		return nil
	}
	seen := make([]bool, n)
	for _, r := range order {
		if r < 0 || r >= n || seen[r] {
			return fmt.Errorf("%v is no order of %d ranks", order, n)
		}
		seen[r] = true
	}
	if len(order) != n {
		return fmt.Errorf("%v is no order of %d ranks", order, n)
	}
	return nil
}

func inOrder(n int, order []int) []int {
	if order != nil {
		return order
	}
	order = make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}
