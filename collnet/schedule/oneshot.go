package schedule

// oneShot is an all-reduce in one round. Everybody has the inputs of all, and
// reduces them in rank order.
func (b *builder) oneShot(p piece) {
	src := make([]Span, b.op.N)
	src[b.op.Rank] = b.large(Input, p)
	for _, r := range b.others() {
		src[r] = b.scratch(p.n, false)
		b.send(0, r, b.large(Input, p))
		b.recv(0, r, src[r])
	}
	b.reduce(0, p.n, b.large(Output, p), false, false, src...)
}

// others are all other ranks, from the next one on, so that not everybody begins with the same.
func (b *builder) others() []int {
	var all []int
	for i := 1; i < b.op.N; i++ {
		all = append(all, (b.op.Rank+i)%b.op.N)
	}
	return all
}
