package schedule

// builder makes a plan. Scratch memory is used once only: so a receive into it
// may be posted early, and no send from it is waited for.
type builder struct {
	op   Op
	plan Plan
}

func (b *builder) round(i int) *Round {
	for len(b.plan.Rounds) <= i {
		b.plan.Rounds = append(b.plan.Rounds, Round{})
	}
	return &b.plan.Rounds[i]
}

// large and small are a piece in the buffer that has the parts of all ranks, and
// in that which has the own part only; an all-reduce has large ones.
func (b *builder) large(s Space, p piece) Span {
	return Span{s, p.off * int64(b.op.Elem), p.n * int64(b.op.Elem)}
}

func (b *builder) small(s Space, p piece) Span {
	off, _ := b.op.part(b.op.Rank)
	p.off -= off
	return b.large(s, p)
}

// scratch is memory for so many elements.
func (b *builder) scratch(n int64, acc bool) Span {
	s := Span{Scratch, b.plan.Scratch, n * b.size(acc)}
	b.plan.Scratch += (s.Len + line - 1) / line * line
	return s
}

func (b *builder) size(acc bool) int64 {
	if acc {
		return int64(b.op.Acc)
	}
	return int64(b.op.Elem)
}

func (b *builder) send(round, to int, s Span) {
	if r := b.round(round); s.Len > 0 {
		r.Sends = append(r.Sends, Send{to, s})
	}
}

func (b *builder) recv(round, from int, s Span) {
	early := s.Space == Scratch || b.op.Kind == AllGather || !b.op.InPlace
	if r := b.round(round); s.Len > 0 {
		r.Recvs = append(r.Recvs, Recv{from, s, early})
	}
}

// reduce is of so many elements; sources and destination may be of the accumulator's type.
func (b *builder) reduce(round int, n int64, dst Span, dstAcc, srcAcc bool, src ...Span) {
	if r := b.round(round); n > 0 {
		r.Reduces = append(r.Reduces, Reduce{dst, dstAcc, src, srcAcc, int(n)})
	}
}

// widen returns elements in the accumulator's type, in which they may be already.
func (b *builder) widen(round int, n int64, s Span) Span {
	if b.op.Acc == b.op.Elem {
		return s
	}
	wide := b.scratch(n, true)
	b.reduce(round, n, wide, true, false, s)
	return wide
}

// keep copies what the rank has of its own to its place in an all-gather's output, which it may have already.
func (b *builder) keep(p piece) {
	if r := b.round(0); !b.op.InPlace && p.n > 0 {
		r.Copies = append(r.Copies, Copy{b.large(Output, p), b.small(Input, p)})
	}
}

// drain has the rank wait until what it sent of its input has left, before it
// writes over it. In an all-gather nothing of the input is ever written.
func (b *builder) drain() {
	if !b.op.InPlace || b.op.Kind == AllGather {
		return
	}
	overwritten := Span{Off: 0, Len: b.op.Count * int64(b.op.Elem)}
	if b.op.Kind == ReduceScatter {
		off, n := b.op.part(b.op.Rank)
		overwritten = b.large(Input, piece{off: off, n: n})
	}
	sent := false
	for i := range b.plan.Rounds {
		r := &b.plan.Rounds[i]
		for _, m := range r.Recvs {
			if m.Span.Space == Output && sent {
				b.plan.Rounds[i-1].Drain = true
				return
			}
		}
		for _, m := range r.Sends {
			s := m.Span
			sent = sent || s.Space == Input && s.Off < overwritten.Off+overwritten.Len && overwritten.Off < s.Off+s.Len
		}
		for _, w := range r.Reduces {
			if w.Dst.Space == Output && sent {
				r.Drain = true
				return
			}
		}
	}
}
