package schedule

import "slices"

// ring sends to the right and receives from the left. A piece's sum begins at
// its owner's right and arrives, whole, at the owner; then results travel on.
// So the order of summation is that of the owner, and shares are cut from the
// whole operation.
func (b *builder) ring(order []int, pieces []piece) {
	n := len(order)
	place := slices.Index(order, b.op.Rank)
	of := func(i int) piece { return pieces[order[((place+i)%n+n)%n]] } // of who stands so far to the right
	right, left := order[(place+1)%n], order[(place+n-1)%n]

	switch b.op.Kind {
	case AllReduce:
		b.ringScatter(left, right, of, b.large(Output, of(0)))
		b.ringGather(n-1, left, right, of, b.large(Output, of(0)))
	case AllGather:
		b.keep(of(0))
		b.ringGather(0, left, right, of, b.small(Input, of(0)))
	case ReduceScatter:
		b.ringScatter(left, right, of, b.small(Output, of(0)))
	}
}

func (b *builder) ringScatter(left, right int, of func(int) piece, result Span) {
	partial := b.large(Input, of(-1))
	for t := range b.op.N - 1 {
		p := of(-2 - t)
		got := b.scratch(p.n, t > 0)
		b.send(t, right, partial)
		b.recv(t, left, got)
		mine := b.large(Input, p)
		if t > 0 {
			mine = b.widen(t, p.n, mine)
		}
		if t == b.op.N-2 {
			b.reduce(t, p.n, result, false, t > 0, got, mine)
			return
		}
		partial = got
		if t == 0 && b.op.Acc > b.op.Elem {
			partial = b.scratch(p.n, true)
		}
		b.reduce(t, p.n, partial, true, t > 0, got, mine)
	}
}

func (b *builder) ringGather(round, left, right int, of func(int) piece, own Span) {
	for t := range b.op.N - 1 {
		b.send(round+t, right, own)
		own = b.large(Output, of(-1-t))
		b.recv(round+t, left, own)
	}
}

func ringPeers(order []int, rank int) []int {
	n, place := len(order), slices.Index(order, rank)
	return []int{order[(place+1)%n], order[(place+n-1)%n]}
}
