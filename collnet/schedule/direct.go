package schedule

// direct has each share sent to its owner, who reduces it in rank order. So the
// order of summation is the same for every element, and an all-reduce may cut
// its shares from the chunk.
func (b *builder) direct(pieces []piece) {
	switch b.op.Kind {
	case AllReduce:
		own := shares(pieces[0], b.op.Elem, b.op.N)
		b.directScatter(own, b.large(Output, own[b.op.Rank]))
		b.directGather(1, own, b.large(Output, own[b.op.Rank]))
	case AllGather:
		own := pieces[b.op.Rank]
		b.keep(own)
		b.directGather(0, pieces, b.small(Input, own))
	case ReduceScatter:
		b.directScatter(pieces, b.small(Output, pieces[b.op.Rank]))
	}
}

func (b *builder) directScatter(pieces []piece, result Span) {
	own := pieces[b.op.Rank]
	src := make([]Span, b.op.N)
	src[b.op.Rank] = b.large(Input, own)
	for _, r := range b.others() {
		src[r] = b.scratch(own.n, false)
		b.send(0, r, b.large(Input, pieces[r]))
		b.recv(0, r, src[r])
	}
	b.reduce(0, own.n, result, false, false, src...)
}

func (b *builder) directGather(round int, pieces []piece, own Span) {
	for _, r := range b.others() {
		b.send(round, r, own)
		b.recv(round, r, b.large(Output, pieces[r]))
	}
}
