package schedule

import "slices"

// cube is where ranks stand for exchanges by halves: as many corners as the
// largest power of two that there are ranks for. A rank more is the guest of the
// one before it, its host, who takes part for both.
type cube struct {
	order   []int
	corners int
	doubled int // the first corners have a guest too
	corner  int // of this rank, or of its host
	guest   bool
}

func newCube(order []int, rank int) cube {
	c := cube{order: order, corners: 1}
	for c.corners*2 <= len(order) {
		c.corners *= 2
	}
	c.doubled = len(order) - c.corners
	place := slices.Index(order, rank)
	c.corner = place - c.doubled
	if place < 2*c.doubled {
		c.corner, c.guest = place/2, place%2 == 1
	}
	return c
}

// first is the place of a corner's host.
func (c cube) first(corner int) int { return corner + min(corner, c.doubled) }

func (c cube) host(corner int) int { return c.order[c.first(corner)] }

// mate is the other rank of this corner, -1 if there is none.
func (c cube) mate() int {
	switch {
	case c.corner >= c.doubled:
		return -1
	case c.guest:
		return c.host(c.corner)
	}
	return c.order[c.first(c.corner)+1]
}

// start is the first round after that in which guests hand over what they have.
func (c cube) start() int { return min(c.doubled, 1) }

func (c cube) peers() (all []int) {
	if c.mate() >= 0 {
		all = append(all, c.mate())
	}
	for m := 1; m < c.corners && !c.guest; m *= 2 {
		all = append(all, c.host(c.corner^m))
	}
	return all
}

// pair has what two corners reduce in the same order at both.
func (c cube) pair(mask int, mine, theirs Span) []Span {
	if c.corner&mask != 0 {
		return []Span{theirs, mine}
	}
	return []Span{mine, theirs}
}

// buffer says where a piece lies.
type buffer func(piece) Span

// packed is scratch memory for pieces that follow one another in their list.
func (b *builder) packed(pieces []piece, acc bool) buffer {
	last := pieces[len(pieces)-1]
	begin, size := pieces[0].at, b.size(acc)
	s := b.scratch(last.at+last.n-begin, acc)
	return func(p piece) Span { return Span{Scratch, s.Off + (p.at-begin)*size, p.n * size} }
}

// fold has hosts reduce what the guests have and what they have themselves. It
// returns where a corner has its sum, and whether that is of the accumulator's type.
func (b *builder) fold(c cube, pieces []piece) (buffer, bool) {
	input := func(p piece) Span { return b.large(Input, p) }
	switch {
	case c.doubled == 0:
		return input, false
	case c.guest:
		for _, p := range runs(pieces) {
			b.send(0, c.mate(), input(p))
		}
		return nil, true
	case c.mate() < 0 && b.op.Acc == b.op.Elem:
		return input, true
	case c.mate() < 0:
		wide := b.packed(pieces, true)
		for _, p := range runs(pieces) {
			b.reduce(0, p.n, wide(p), true, false, input(p))
		}
		return wide, true
	}
	theirs := b.packed(pieces, false)
	sum := b.sum(pieces, theirs, false)
	for _, p := range runs(pieces) {
		b.recv(0, c.mate(), theirs(p))
		b.reduce(0, p.n, sum(p), true, false, input(p), theirs(p))
	}
	return sum, true
}

// sum is where a partial sum goes: onto what came, if that is as wide.
func (b *builder) sum(pieces []piece, came buffer, acc bool) buffer {
	if acc || b.op.Acc == b.op.Elem {
		return came
	}
	return b.packed(pieces, true)
}
