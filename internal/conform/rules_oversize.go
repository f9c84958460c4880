package conform

import (
	"fmt"

	"weft/internal/host"
)

var oversizeRules = []*Rule{
	{ID: "oversize.refused", Says: "a send larger than its receive is refused, unless it is cut (oversize.cut): the receive is never done with a part of it",
		Basis: basisDoc, Check: func(e *Env) { e.oversize(false) }},
	{ID: "oversize.code", Says: "a send larger than its receive ends in ncclInvalidUsage, unless it is cut",
		Basis: basisDoc, Check: func(e *Env) { e.oversize(true) }},
	{ID: "oversize.guard", Says: "a send larger than its receive writes nothing behind the receive's memory",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			b := l.rx.buf(8192)
			b.fillByte(0x5c)
			r := l.recvOp(1, b)
			r.parts[0].Size = 1000
			_ = e.attempt(r, l.sendOp(l.tx.buf(8192), 8192, 1))
			b.at(1000).untouched(0x5c, "memory behind the receive")
		}},
	{ID: "oversize.again", Says: "test of a request that was refused returns the same code again, as long as its comm is open: NCCL 2.20 to 2.23 go on asking",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			if l.cuts() {
				return
			}
			r, s := l.oversize()
			_ = e.attempt(r, s)
			for _, o := range []*op{r, s} {
				if o.err == nil || o.req == 0 {
					continue
				}
				first := host.Code(o.err)
				for range 3 {
					o.test()
					if code := host.Code(o.err); code != first {
						e.failf("test of the refused %s returned %v, then %v", o.what, first, code)
					}
				}
			}
		}},
	{ID: "oversize.cut", From: tableCuts, To: tableCuts, Says: "where regIsGlobal is set, a send larger than its receive is cut to it, and both ends' test tell what was taken: NCCL 2.20 to 2.23 send the whole of a registered buffer, and go on behind that",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			if !l.cuts() {
				return
			}
			const size, room = 8192, 3000
			a, b := l.tx.buf(size), l.rx.buf(size)
			a.fill(7)
			for at := int64(0); at < size; {
				want := min(room, size-at)
				r, s := l.recvOp(1, b), l.sendOp(a, size-at, 1)
				r.parts[0].Data, r.parts[0].Size = b.addr+host.Ptr(at), want
				s.parts[0].Data = a.addr + host.Ptr(at)
				e.run(r, s)
				if r.sizes[0] != want || s.sizes[0] != want {
					e.failf("a send of %d bytes into a receive of %d: the receive is done with %d, the send with %d", size-at, want, r.sizes[0], s.sizes[0])
				}
				at += want
			}
			b.holds(size, 7, "what came in parts")
			n, bufs := e.group(l, size)
			g := l.recvOp(40, bufs...)
			ops := []*op{g}
			for i := range n {
				g.parts[i].Size = int64(1000 * (i + 1))
				ops = append(ops, l.pattern(2500, uint64(i), 40+i))
			}
			e.run(ops...)
			for i, b := range bufs {
				want := min(2500, int64(1000*(i+1)))
				if g.sizes[i] != want || ops[i+1].sizes[0] != want {
					e.failf("sends of 2500 bytes into a group: receive %d of %d is done with %d, its send with %d", i, g.parts[i].Size, g.sizes[i], ops[i+1].sizes[0])
				}
				b.holds(want, uint64(i), fmt.Sprintf("buffer of tag %d", 40+i))
				b.at(want).untouched(0x5c, "memory behind the receive")
			}
		}},
}

// tableCuts is the table whose hosts count on the network to cut a send to its receive.
const tableCuts = 8

// cuts tells whether NCCL counts on that for the link's memory.
func (l *link) cuts() bool {
	if l.e.version != tableCuts {
		return false
	}
	x, err := l.tx.net.Props(0, "fill", 0)
	l.e.must(err, "getProperties")
	return x.RegIsGlobal != 0
}

// oversize is a send of 8192 bytes and its receive of 1000.
func (l *link) oversize() (r, s *op) {
	r = l.recvOp(1, l.rx.buf(8192))
	r.parts[0].Size = 1000
	return r, l.sendOp(l.tx.buf(8192), 8192, 1)
}

// oversize requires that such a pair is refused.
func (e *Env) oversize(code bool) {
	l := e.apart()
	if l.cuts() {
		return
	}
	r, s := l.oversize()
	codes := e.attempt(r, s)
	if !code {
		if r.done {
			e.failf("the receive of 1000 bytes is done with size %v after a send of 8192", r.sizes)
		}
		return
	}
	for _, c := range codes {
		if c == host.InvalidUsage {
			return
		}
	}
	if len(codes) > 0 {
		e.failf("neither side said ncclInvalidUsage, but %v", codes)
	}
}

// attempt works on both ends until both are done or one has failed and the other
// had time to hear of it; it returns the codes of those that failed.
func (e *Env) attempt(ops ...*op) (codes []host.Result) {
	rounds := 0
	e.until(0, "an end of "+what(ops), func() bool {
		open, failed := false, false
		for _, o := range ops {
			switch {
			case o.err != nil:
				failed = true
				continue
			case o.done:
				continue
			case o.req == 0:
				o.post()
			default:
				o.test()
			}
			open = true
		}
		if failed {
			rounds++
		}
		return !open || rounds > 300
	})
	for _, o := range ops {
		if o.err != nil {
			codes = append(codes, host.Code(o.err))
		}
	}
	return codes
}
