package schedule

import "slices"

// halving sums by halves: in each round a corner sends half of what it still
// answers for to the one across, and reduces the other half. Results are gathered
// the opposite way, by doubling. Every element is summed in the same order.
type halving struct {
	*builder
	cube
	pieces []piece
	firsts []int // of each corner, in pieces; and their end
}

// halvingOf is of pieces in the order of the ranks.
func (b *builder) halvingOf(order []int, pieces []piece) {
	c := newCube(order, b.op.Rank)
	if b.op.Kind == AllReduce {
		b.halvingAllReduce(c, pieces[0])
		return
	}
	h := &halving{b, c, make([]piece, len(pieces)), nil}
	var at int64
	for i, r := range order {
		h.pieces[i] = pieces[r]
		h.pieces[i].at = at
		at += pieces[r].n
	}
	for i := range c.corners + 1 {
		h.firsts = append(h.firsts, c.first(i))
	}
	place := slices.Index(order, b.op.Rank)
	if b.op.Kind == AllGather {
		h.allGather(place)
	} else {
		h.reduceScatter(place)
	}
}

func (b *builder) halvingAllReduce(c cube, p piece) {
	h := &halving{b, c, shares(p, b.op.Elem, c.corners), nil}
	for i := range c.corners + 1 {
		h.firsts = append(h.firsts, i)
	}
	output := func(p piece) Span { return b.large(Output, p) }
	at, acc := b.fold(c, h.pieces)
	round := h.scatter(c.start(), at, acc, output)
	round = h.gather(round, output)
	b.unfold(c, round, output(p))
}

func (h *halving) reduceScatter(place int) {
	at, acc := h.fold(h.cube, h.pieces)
	own := h.small(Output, h.pieces[place])
	var visiting Span // what the guest is to have
	if h.mate() >= 0 {
		visiting = own
		if !h.guest {
			visiting = h.scratch(h.pieces[place+1].n, false)
		}
	}
	round := h.scatter(h.start(), at, acc, func(p piece) Span {
		if p == h.pieces[place] {
			return own
		}
		return visiting
	})
	h.unfold(h.cube, round, visiting)
}

func (h *halving) allGather(place int) {
	own := h.pieces[place]
	h.keep(own)
	if h.guest {
		h.send(0, h.mate(), h.small(Input, own))
	} else if h.mate() >= 0 {
		h.recv(0, h.mate(), h.large(Output, h.pieces[place+1]))
	}
	round := h.gather(h.start(), func(p piece) Span {
		if p == own { // its copy may not be there yet
			return h.small(Input, p)
		}
		return h.large(Output, p)
	})
	if h.mate() < 0 {
		return
	}
	guest := h.first(h.corner) + 1
	for _, some := range [][]piece{h.pieces[:guest], h.pieces[guest+1:]} {
		for _, p := range runs(some) {
			h.unfold(h.cube, round, h.large(Output, p))
		}
	}
}

// of are the pieces of the corners from one to another.
func (h *halving) of(from, to int) []piece { return h.pieces[h.firsts[from]:h.firsts[to]] }

// scatter leaves the corner's own pieces where result says, and returns the next round.
func (h *halving) scatter(round int, at buffer, acc bool, result buffer) int {
	from, to := 0, h.corners
	for m := h.corners / 2; m > 0; m, round = m/2, round+1 {
		if h.guest {
			continue
		}
		keep, give := h.of(from, from+m), h.of(from+m, to)
		if h.corner&m != 0 {
			keep, give = give, keep
			from += m
		}
		to = from + m
		across := h.host(h.corner ^ m)
		for _, p := range runs(give) {
			h.send(round, across, at(p))
		}
		got := h.packed(keep, acc)
		for _, p := range runs(keep) {
			h.recv(round, across, got(p))
		}
		sum, parts := result, keep
		if m > 1 {
			sum, parts = h.sum(keep, got, acc), runs(keep)
		}
		for _, p := range parts {
			h.reduce(round, p.n, sum(p), m > 1, acc, h.pair(m, at(p), got(p))...)
		}
		at, acc = sum, true
	}
	return round
}

// gather brings the pieces of all corners into the output, and returns the next round.
func (h *halving) gather(round int, own buffer) int {
	for m := 1; m < h.corners; m, round = m*2, round+1 {
		if h.guest {
			continue
		}
		mine := h.corner &^ (m - 1)
		across := h.host(h.corner ^ m)
		for _, p := range runs(h.of(mine, mine+m)) {
			h.send(round, across, own(p))
		}
		for _, p := range runs(h.of(mine^m, mine^m+m)) {
			h.recv(round, across, h.large(Output, p))
		}
	}
	return round
}

// runs joins pieces where one ends and the next begins.
func runs(pieces []piece) (all []piece) {
	for _, p := range pieces {
		if n := len(all); n > 0 && all[n-1].off+all[n-1].n == p.off && p.n > 0 {
			all[n-1].n += p.n
		} else if p.n > 0 {
			all = append(all, p)
		}
	}
	return all
}
