package schedule

// doubling is an all-reduce in as many rounds as the cube has dimensions: in each,
// a corner exchanges all of its sum with the one across. All corners add in the
// same order, and so do all elements.
func (b *builder) doubling(c cube, p piece) {
	at, acc := b.fold(c, []piece{p})
	round := c.start()
	for m := c.corners / 2; m > 0; m /= 2 {
		if c.guest {
			round++
			continue
		}
		got := b.scratch(p.n, acc)
		b.send(round, c.host(c.corner^m), at(p))
		b.recv(round, c.host(c.corner^m), got)
		sum := b.large(Output, p)
		if m > 1 {
			sum = b.sum([]piece{p}, func(piece) Span { return got }, acc)(p)
		}
		b.reduce(round, p.n, sum, m > 1, acc, c.pair(m, at(p), got)...)
		at, acc = func(piece) Span { return sum }, true
		round++
	}
	b.unfold(c, round, b.large(Output, p))
}

// unfold has guests receive a result from their hosts.
func (b *builder) unfold(c cube, round int, result Span) {
	switch {
	case c.guest:
		b.recv(round, c.mate(), result)
	case c.mate() >= 0:
		b.send(round, c.mate(), result)
	}
}
