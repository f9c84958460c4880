package collnet

import (
	"slices"

	"weft/collnet/schedule"
	"weft/internal/report"
)

// track carries one chunk at a time, over connections of its own: messages on a connection are received in the order in
// which they are sent, and chunks that shared one would have to agree on that with all ranks.
type track struct {
	self
	sends    []Link // by rank; nil: its own
	receives []Link
	scratch  scratch

	op     *op // nil: it is free
	tag    int32
	plan   *schedule.Plan
	round  int
	ready  int // rounds whose receives have been posted
	sent   int // sends of the round that have been posted
	posted int // receives of round ready that have been posted
	reduce int // reductions of the round that are done
	slice  int // elements of the next one that are
	copied int // copies of the round that are done

	computed int // bytes that the last step reduced or copied

	sending   []message
	receiving []message
	sources   []uintptr // of the last slice that was reduced
}

// message is a request of the net.
type message struct {
	request uintptr
	link    Link
	rank    int
	round   int
	size    int
}

const (
	mostEarly = 64        // receives posted that have not come
	sliceOf   = 128 << 10 // bytes that are reduced at a time, before links are looked at again
)

// link is one of the track's, any, on which memory is registered; nil: there is none.
func (t *track) link() Link {
	for _, l := range t.sends {
		if l != nil {
			return l
		}
	}
	return nil
}

// begin takes the operation's next chunk.
func (t *track) begin(o *op, tag int32) error {
	plan, err := o.way.plan(o.what, o.next)
	if err != nil {
		return t.errorf(report.Internal, o.name, "%w", err)
	}
	if err := t.scratch.grow(t.link(), int(plan.Scratch)); err != nil {
		return err
	}
	t.stop()
	t.op, t.plan, t.tag = o, plan, tag
	o.next++
	return nil
}

// stop makes the track free.
func (t *track) stop() {
	*t = track{self: t.self, sends: t.sends, receives: t.receives, scratch: t.scratch, computed: t.computed,
		sending: t.sending[:0], receiving: t.receiving[:0], sources: t.sources}
}

// step does what can be done now, but for a slice of work only: it looks at what is under way, computes, and posts what
// follows from that. What it posts it does not look at, for that takes a system call, and an answer takes longer. It reports
// whether there was anything.
func (t *track) step() (bool, error) {
	t.computed = 0
	tested, err := t.test()
	if err != nil {
		return false, err
	}
	computed, err := t.compute()
	if err != nil || t.op == nil {
		return true, err
	}
	readied, err := t.postReceives()
	if err != nil {
		return false, err
	}
	sent, err := t.postSends()
	return tested || computed || readied || sent, err
}

// postReceives posts those of the round, and of later ones what may be written early.
func (t *track) postReceives() (moved bool, err error) {
	for t.ready < len(t.plan.Rounds) {
		all := t.plan.Rounds[t.ready].Recvs
		for ; t.posted < len(all); t.posted++ {
			m := all[t.posted]
			if t.ready > t.round && (!m.Early || len(t.receiving) >= mostEarly) {
				return moved, nil
			}
			l, b := t.receives[m.From], t.at(m.Span)
			request, err := l.Receive(b, t.tag)
			if err != nil {
				return false, t.lost(t.op.name, m.From, l, err)
			}
			if request == 0 {
				return moved, nil
			}
			t.receiving = append(t.receiving, message{request, l, m.From, t.ready, b.Size})
			moved = true
		}
		t.ready, t.posted = t.ready+1, 0
	}
	return moved, nil
}

// postSends posts those of the round, in order: the peer has posted its receives so.
func (t *track) postSends() (moved bool, err error) {
	if t.round == len(t.plan.Rounds) {
		return false, nil
	}
	for all := t.plan.Rounds[t.round].Sends; t.sent < len(all); t.sent++ {
		m := all[t.sent]
		l, b := t.sends[m.To], t.at(m.Span)
		request, err := l.Send(b, t.tag)
		if err != nil {
			return false, t.lost(t.op.name, m.To, l, err)
		}
		if request == 0 {
			return moved, nil
		}
		t.sending = append(t.sending, message{request, l, m.To, t.round, b.Size})
		moved = true
	}
	return moved, nil
}

func (t *track) test() (bool, error) {
	came, err := t.finished(&t.receiving)
	if err != nil {
		return false, err
	}
	left, err := t.finished(&t.sending)
	return came || left, err
}

// finished takes out the messages that are complete. It does not ask after receives of later rounds, which are posted early:
// over TCP each question is a system call.
func (t *track) finished(all *[]message) (moved bool, err error) {
	kept := (*all)[:0]
	for _, m := range *all {
		if m.round > t.round {
			kept = append(kept, m)
			continue
		}
		done, size, err := m.link.Test(m.request)
		switch {
		case err != nil:
			return false, t.lost(t.op.name, m.rank, m.link, err)
		case !done:
			kept = append(kept, m)
		case size != m.size:
			return false, t.errorf(report.Peer, t.op.name, "rank %d sent %d bytes where this rank expects %d", m.rank, size, m.size).
				Try("all ranks must call the same collectives in the same order, with the same counts and types")
		default:
			moved = true
		}
	}
	*all = kept
	return moved, nil
}

// compute reduces and copies while the round's messages are there, a slice in all, and ends rounds and the chunk.
func (t *track) compute() (moved bool, err error) {
	for ; t.computed < sliceOf && t.came(); moved = true {
		if t.round == len(t.plan.Rounds) {
			t.op.left--
			t.stop()
			return true, nil
		}
		r := &t.plan.Rounds[t.round]
		switch {
		case t.reduce < len(r.Reduces):
			if err := t.reduceSlice(&r.Reduces[t.reduce]); err != nil {
				return false, err
			}
		case t.copied < len(r.Copies):
			m := &r.Copies[t.copied]
			move(t.at(m.Dst).Address, t.at(m.Src).Address, int(m.Dst.Len))
			t.computed += int(m.Dst.Len)
			t.copied++
		default:
			t.round++
			t.sent, t.reduce, t.copied = 0, 0, 0
		}
	}
	return moved, nil
}

// came reports whether the messages of the round are where they belong; behind the last round, those that the rank sent.
func (t *track) came() bool {
	if t.round == len(t.plan.Rounds) {
		return len(t.sending) == 0
	}
	r := &t.plan.Rounds[t.round]
	return t.sent == len(r.Sends) && t.ready > t.round && (!r.Drain || len(t.sending) == 0) &&
		!slices.ContainsFunc(t.receiving, func(m message) bool { return m.round == t.round })
}

// awaits adds to the groups what must be done before the track can move, and 0, and to the others the sends that are under
// way besides, which move when they are looked at.
func (t *track) awaits(groups, others []uintptr) ([]uintptr, []uintptr) {
	if t.op == nil {
		return groups, others
	}
	drains := t.round == len(t.plan.Rounds)
	if !drains {
		r := &t.plan.Rounds[t.round]
		if drains = r.Drain; t.ready <= t.round || t.sent < len(r.Sends) { // the net has no room yet
			return append(groups, 0), others
		}
	}
	for _, m := range t.sending {
		if drains {
			groups = append(groups, m.request)
		} else {
			others = append(others, m.request)
		}
	}
	for _, m := range t.receiving {
		if m.round == t.round {
			groups = append(groups, m.request)
		}
	}
	return append(groups, 0), others
}

// reduceSlice does one slice of a reduction.
func (t *track) reduceSlice(r *schedule.Reduce) error {
	elem, acc := t.op.what.Elem, t.op.what.Acc
	size := func(wide bool) int {
		if wide {
			return acc
		}
		return elem
	}
	n := min(r.Count-t.slice, sliceOf/acc)
	src := t.sources[:0]
	for _, s := range r.Src {
		src = append(src, t.at(s).Address+uintptr(t.slice*size(r.SrcAcc)))
	}
	t.sources = src
	dst := t.at(r.Dst).Address + uintptr(t.slice*size(r.DstAcc))
	if err := reduce(dst, r.DstAcc, src, r.SrcAcc, n, t.op.elem, t.op.red); err != nil {
		return t.errorf(report.Internal, t.op.name, "%w", err)
	}
	t.computed += n * acc * len(src)
	if t.slice += n; t.slice == r.Count {
		t.reduce, t.slice = t.reduce+1, 0
	}
	return nil
}

// at is where a span lies.
func (t *track) at(s schedule.Span) Buffer {
	off, size := int(s.Off), int(s.Len)
	switch s.Space {
	case schedule.Input:
		return t.op.buffer(t.op.send, off, size)
	case schedule.Output:
		return t.op.buffer(t.op.recv, off, size)
	}
	return t.scratch.at(off, size)
}
