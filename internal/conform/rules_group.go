package conform

import "fmt"

// group is n receives posted together on a link, skipped where the plugin has no groups.
func (e *Env) group(l *link, size int64) (n int, bufs []*buf) {
	x, err := l.rx.net.Props(0, "fill", 0)
	e.must(err, "getProperties")
	if n = min(x.MaxRecvs, 8); n < 2 {
		e.skipf("maxRecvs is %d", x.MaxRecvs)
	}
	for range n {
		b := l.rx.buf(size)
		b.fillByte(0x5c)
		bufs = append(bufs, b)
	}
	return n, bufs
}

func (l *link) pattern(size int64, seed uint64, tag int) *op {
	a := l.tx.buf(max(size, 1))
	a.fill(seed)
	return l.sendOp(a, size, tag)
}

var groupRules = []*Rule{
	{ID: "group.tags", From: 5, Says: "within a grouped receive each send goes to the buffer of its tag, whatever the order of the sends",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			n, bufs := e.group(l, 5000)
			ops := []*op{l.recvOp(40, bufs...)}
			for i := n - 1; i >= 0; i-- {
				ops = append(ops, l.pattern(5000, uint64(i), 40+i))
			}
			e.run(ops...)
			for i, b := range bufs {
				b.holds(5000, uint64(i), fmt.Sprintf("buffer of tag %d", 40+i))
			}
		}},
	{ID: "group.sizes", From: 5, Says: "test tells one size for each buffer of a group",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			n, bufs := e.group(l, 5000)
			ops := []*op{l.recvOp(40, bufs...)}
			for i := range n {
				ops = append(ops, l.pattern(int64(1000*(i%5)+i+1), uint64(i), 40+i))
			}
			e.run(ops...)
			for i := range n {
				if want := int64(1000*(i%5) + i + 1); ops[0].sizes[i] != want {
					e.failf("sizes are %v, want %d for buffer %d", ops[0].sizes, want, i)
				}
			}
		}},
	{ID: "group.whole", From: 5, Says: "a group is done when all its messages have come, not before",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			n, bufs := e.group(l, 2000)
			r := l.recvOp(40, bufs...)
			var sends []*op
			for i := range n {
				sends = append(sends, l.pattern(2000, uint64(i), 40+i))
			}
			e.until(0, r.what, r.post)
			for i, s := range sends[:n-1] {
				e.until(0, s.what, func() bool { return s.keepUp(r) })
				if r.done {
					e.failf("done with %d of %d messages", i, n)
				}
				for range 200 {
					if r.test() {
						e.failf("done after %d of %d messages", i+1, n)
					}
					e.must(r.err, "test of the group")
				}
			}
			e.run(append(sends, r)...)
		}},
	{ID: "group.first", From: 5, Says: "tags assign within the first receive of the queue only: equal tags in the next group wait their turn",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			_, first := e.group(l, 3000)
			_, second := e.group(l, 3000)
			first, second = first[:2], second[:2]
			ops := []*op{l.recvOp(7, first...), l.recvOp(7, second...)}
			for i, tag := range []int{7, 8, 7, 8} {
				ops = append(ops, l.pattern(3000, uint64(i), tag))
			}
			e.run(ops...)
			first[0].holds(3000, 0, "first group, tag 7")
			first[1].holds(3000, 1, "first group, tag 8")
			second[0].holds(3000, 2, "second group, tag 7")
			second[1].holds(3000, 3, "second group, tag 8")
		}},
	{ID: "group.requests", From: 5, Says: "a sender carries NCCL_NET_MAX_REQUESTS x maxRecvs sends at once",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			const size = 64
			n, bufs := e.group(l, size)
			var recvs, sends []*op
			for range 8 {
				recvs = append(recvs, l.recvOp(1, bufs...))
				for i := range n {
					sends = append(sends, l.pattern(size, uint64(i), 1+i))
				}
			}
			for _, r := range recvs {
				e.until(0, "8 groups posted together", func() bool {
					ok := r.post()
					e.must(r.err, "irecv")
					return ok
				})
			}
			for i, s := range sends {
				e.until(0, fmt.Sprintf("request for send %d of %d, none tested", i+1, len(sends)), func() bool { return s.keepUp(recvs...) })
			}
			e.run(append(recvs, sends...)...)
		}},
}

var recvRules = []*Rule{
	{ID: "recv.optional", From: 9, Says: "irecv may find *request = 1 (nobody waits for its completion), of a group too, and overwrites it with a request or NULL",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			a, b := l.tx.buf(2000), l.rx.buf(2000)
			a.fill(1)
			r := l.recvOp(1, b)
			r.extra = []any{"req", 1}
			e.until(0, "a request", func() bool {
				if r.post(); r.err == nil && r.req == 1 {
					e.failf("irecv left *request = 1; NCCL calls test(1) next")
				}
				e.must(r.err, "irecv with *request = 1")
				return r.req != 0
			})
			s := l.sendOp(a, 2000, 1)
			e.run(r, s)
			// Done may come early; the bytes come nevertheless.
			e.until(2000, "the bytes of a receive with *request = 1", func() bool {
				l.move(10, 2)
				return l.rx.h.Check(b.addr, 2000, 1) == nil
			})
			if x, err := l.rx.net.Props(0, "fill", 0); err != nil || x.MaxRecvs < 2 {
				return
			}
			n, bufs := e.group(l, 5000)
			ops := []*op{l.recvOp(40, bufs...)}
			ops[0].extra = []any{"req", 1}
			e.until(0, "a request of a group", func() bool {
				if ops[0].post(); ops[0].err == nil && ops[0].req == 1 {
					e.failf("irecv of a group left *request = 1")
				}
				e.must(ops[0].err, "irecv of a group with *request = 1")
				return ops[0].req != 0
			})
			for i := range n {
				ops = append(ops, l.pattern(int64(1000+i), uint64(i), 40+i))
			}
			e.run(ops...)
			for i, b := range bufs {
				b.holds(int64(1000+i), uint64(i), "message of a group with *request = 1")
			}
		}},
	{ID: "flush.done", Says: "after a receive, flush succeeds, and iflush gives NULL or a request that test finishes; where there is only host memory it may be refused",
		Basis: basisDoc, Check: func(e *Env) { e.flush(false) }},
	{ID: "flush.group", From: 5, Says: "after a grouped receive iflush of all its buffers gives NULL or a request that test finishes; where there is only host memory it may be refused",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			n, bufs := e.group(l, 2000)
			r := l.recvOp(1, bufs...)
			ops := []*op{r}
			for i := range n {
				ops = append(ops, l.pattern(int64(2000-i), uint64(i), 1+i))
				r.parts[i].Size = int64(2000 - i) // of which iflush is told
			}
			e.run(ops...)
			e.flushed(r, false)
		}},
	{ID: "flush.host", Care: true, Says: "flush of host memory succeeds", Basis: basisWeft, Check: func(e *Env) { e.flush(true) }},
}

func (e *Env) flush(host bool) {
	l := e.apart()
	a, b := l.tx.buf(2000), l.rx.buf(2000)
	r := l.recvOp(1, b)
	e.run(r, l.sendOp(a, 2000, 1))
	e.flushed(r, host)
}

// flushed flushes what a receive has brought.
func (e *Env) flushed(r *op, host bool) {
	l := r.l
	req, err := l.rx.net.Iflush(l.recv, r.parts)
	e.alive(err, "flush")
	x, _ := l.rx.net.Props(0, "fill", 0)
	if refused := err != nil && x.PtrSupport&2 == 0 && x.ForceFlush == 0; refused && !host {
		e.skipf("refused, as NCCL never flushes host memory: %v", err)
	}
	e.must(err, "flush")
	if req == 0 || host {
		return
	}
	f := &op{l: l, what: "flush", parts: r.parts, req: req}
	e.run(f)
}
