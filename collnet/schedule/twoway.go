package schedule

import "slices"

// Cables are used in both directions, and both cables of a rank at once, by two
// halves that go opposite ways. Which way an element goes decides in which order
// it is summed: halves are cut from the whole operation.

// rings is a ring each way.
func (b *builder) rings(order []int, pieces []piece) {
	var there, back []piece
	for i := 0; i < len(pieces); i += 2 {
		there, back = append(there, pieces[i]), append(back, pieces[i+1])
	}
	b.ring(order, there)
	reversed := slices.Clone(order)
	slices.Reverse(reversed)
	b.ring(reversed, back)
}

// matchings is an all-reduce on a ring of four: each half goes by halving over
// both pairs of opposite cables, one after the other, and the halves take turns.
func (b *builder) matchings(order []int, halves []piece) {
	for i, square := range squares(order) {
		b.halvingAllReduce(newCube(square, b.op.Rank), halves[i])
	}
}

// squares are the two ways to walk a ring of four by its cables.
func squares(ring []int) [2][]int {
	return [2][]int{Square(ring), {ring[0], ring[3], ring[1], ring[2]}}
}

// Square is the order in which Doubling and Halving use the cables of a ring of four only.
func Square(ring []int) []int { return []int{ring[0], ring[1], ring[3], ring[2]} }
