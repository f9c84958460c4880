package conform

import (
	"fmt"

	"weft/internal/host"
)

// requests is how many receives a comm must carry at once: NCCL_NET_MAX_REQUESTS
// of the releases that prefer the table.
func requests(version int) int {
	if version >= host.SinceWideRegMr {
		return 32
	}
	return 8
}

var dataRules = []*Rule{
	{ID: "data.once", Gate: true, Says: "a message arrives with all its bytes",
		Basis: basisDoc, Check: func(e *Env) { e.apart().move(1<<10, 1) }},
	{ID: "send.early", Gate: true, Says: "isend never blocks: before any receive is posted it returns a request or NULL",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			a := l.tx.buf(8 << 20)
			a.fill(1)
			b := l.rx.buf(8 << 20)
			s := l.sendOp(a, a.size, 1)
			for range 50 {
				if s.post() {
					break
				}
				e.must(s.err, "isend before any receive")
			}
			e.run(l.recvOp(1, b), s)
			b.holds(b.size, 1, "message sent before its receive")
		}},
	{ID: "size.zero", Says: "a message of 0 bytes arrives as any other",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			a, b := l.tx.buf(64), l.rx.buf(64)
			e.run(l.recvOp(1, b), l.sendOp(a, 0, 1))
			l.move(100, 1)
		}},
	{ID: "size.odd", Says: "any size and any alignment arrives whole, and nothing beside it is written",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			for _, size := range []int64{1, 3, 7, 63, 65, 1023, 1025, 4095, 65535, 65537, 131071, 1<<20 + 1, 3<<20 - 5} {
				// Both end at a page that faults; so the beginnings have any alignment.
				a, whole := l.tx.buf(size), l.rx.buf(64+size)
				a.fill(uint64(size))
				whole.fillByte(0x5c)
				b := whole.at(64)
				e.run(l.recvOp(1, b), l.sendOp(a, size, 1))
				what := fmt.Sprintf("message of %d bytes", size)
				b.holds(size, uint64(size), what)
				whole.cut(64).untouched(0x5c, "memory before the "+what)
			}
		}},
	{ID: "size.large", Says: "24 MiB arrive whole",
		Basis: basisDoc, Check: func(e *Env) { e.apart().move(24<<20, 3) }},
	{ID: "size.gib", Slow: true, Says: "1 GiB in one message arrives whole",
		Basis: basisLoader, Check: func(e *Env) { e.apart().move(1<<30, 4) }},
	{ID: "recv.larger", Says: "a receive may be larger than what arrives; the rest of its memory is left alone",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			a, b := l.tx.buf(1<<20), l.rx.buf(1<<20)
			for _, size := range []int64{10, 5000, 700000} {
				a.fill(uint64(size))
				b.fillByte(0x5c)
				e.run(l.recvOp(1, b), l.sendOp(a, size, 1))
				b.holds(size, uint64(size), "message in a larger receive")
				b.at(size).untouched(0x5c, "rest of the receive's memory")
			}
		}},
	{ID: "test.sizes", Says: "test tells the size that was sent or received, not the size that was posted",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			a, b := l.tx.buf(1<<20), l.rx.buf(1<<20)
			for _, size := range []int64{1, 999, 300000} {
				r, s := l.recvOp(1, b), l.sendOp(a, size, 1)
				e.run(r, s)
				if r.sizes[0] != size {
					e.failf("receive of a message of %d bytes: test says %d", size, r.sizes[0])
				}
				if s.sizes[0] != size {
					e.failf("send of %d bytes: test says %d", size, s.sizes[0])
				}
			}
		}},
	{ID: "test.nosizes", Says: "test's sizes may be NULL",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.self()
			a, b := l.tx.buf(100), l.rx.buf(100)
			r, s := l.recvOp(1, b), l.sendOp(a, 100, 1)
			e.until(0, "done with sizes NULL", func() bool {
				for _, o := range []*op{r, s} {
					if o.req == 0 {
						o.post()
						e.must(o.err, o.what)
					} else if !o.done {
						x, err := l.tx.call(l.tx.net.Data, "test", host.Args{"req", o.req, "sizes", 0, "done", 0})
						e.must(err, "test with sizes NULL")
						o.done = x.Int("done") != 0
					}
				}
				return r.done && s.done
			})
		}},
	{ID: "test.done", Says: "test writes done each time, 0 while the request is under way: NCCL's variable is uninitialised",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.self()
			r := l.recvOp(1, l.rx.buf(100))
			e.until(0, r.what, r.post)
			for range 5 {
				x, err := l.rx.call(l.rx.net.Data, "test", host.Args{"req", r.req, "done", 7})
				e.must(err, "test of a receive that nobody sent for")
				if d := x.Int("done"); d != 0 {
					e.failf("test of a receive that nobody sent for: done was 7 before the call and is %d after", d)
				}
			}
		}},
	{ID: "order.match", Says: "messages meet receives in the order in which both were posted",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			const n, size = 8, 5000
			var recvs, sends []*op
			var bufs []*buf
			for i := range n {
				a, b := l.tx.buf(size), l.rx.buf(size)
				a.fill(uint64(100 + i))
				bufs = append(bufs, b)
				recvs = append(recvs, l.recvOp(1, b))
				sends = append(sends, l.sendOp(a, size, 1))
			}
			e.run(append(recvs, sends...)...)
			for i, b := range bufs {
				b.holds(size, uint64(100+i), fmt.Sprintf("message %d of %d", i, n))
			}
		}},
	{ID: "order.test", Care: true, Says: "requests under way on a comm may be tested in any order (NCCL tests the oldest)",
		Basis: basisWeft, Check: func(e *Env) {
			l := e.apart()
			const n = 4
			var recvs, sends []*op
			for range n {
				recvs = append(recvs, l.recvOp(1, l.rx.buf(3000)))
				sends = append(sends, l.sendOp(l.tx.buf(3000), 3000, 1))
			}
			for _, r := range recvs {
				e.until(0, r.what, r.post)
			}
			e.until(0, "all done, the youngest tested first", func() bool {
				all := true
				for i := n - 1; i >= 0; i-- {
					if r := recvs[i]; !r.done {
						r.test()
						e.must(r.err, fmt.Sprintf("test of receive %d of %d", i+1, n))
						all = false
					}
				}
				for i := n - 1; i >= 0; i-- {
					if s := sends[i]; !s.done && s.req != 0 {
						s.test()
						e.must(s.err, fmt.Sprintf("test of send %d of %d", i+1, n))
						all = false
					} else if !s.done && (i == 0 || sends[i-1].req != 0) {
						s.post()
						e.must(s.err, "isend")
						all = false
					}
				}
				return all
			})
		}},
	{ID: "requests.enough", Says: "a comm carries NCCL_NET_MAX_REQUESTS receives at once: 8, from v8 on 32",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.self()
			b := l.rx.buf(1000)
			for i := range requests(e.version) {
				o := l.recvOp(1, b)
				e.until(0, fmt.Sprintf("request for receive %d of %d posted together", i+1, requests(e.version)), func() bool {
					ok := o.post()
					e.must(o.err, "irecv")
					return ok
				})
			}
		}},
	{ID: "requests.beyond", Care: true, Says: "beyond its limit of requests irecv returns NULL, not an error (the documentation allows ncclInternalError)",
		Basis: basisWeft, Check: func(e *Env) {
			l := e.self()
			b := l.rx.buf(1000)
			for i := range 1024 {
				o := l.recvOp(1, b)
				ok := o.post()
				e.must(o.err, fmt.Sprintf("irecv %d", i+1))
				if !ok {
					return
				}
			}
		}},
	{ID: "send.stale", Says: "isend may find an old request in *request, which NCCL does not clear, and overwrites it: with NULL where it cannot begin yet",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			const size = 300_000 // more than leaves ahead of its receive
			a, b := l.tx.buf(size), l.rx.buf(size)
			a.fill(3)
			old := host.Ptr(1)
			for range 3 {
				r, s := l.recvOp(1, b), l.sendOp(a, size, 1)
				b.fillByte(0x5c)
				s.extra = []any{"req", old}
				overwritten := func() bool {
					s.post()
					if e.must(s.err, "isend with an old request in *request"); s.req == old {
						e.failf("isend left *request = %#x; NCCL takes that for the request of this send", old)
					}
					return s.req != 0
				}
				overwritten()
				e.until(0, r.what, r.post)
				e.until(0, "a request from isend", func() bool {
					if !r.done {
						r.test()
					}
					e.must(r.err, "test of the receive")
					return s.req != 0 || overwritten()
				})
				old = s.req
				e.run(r, s)
				b.holds(size, 3, "message")
			}
		}},
	{ID: "send.retry", Says: "an isend that returned NULL has sent nothing, and repeating it alone gets there",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			const n, size = 5, 40000 // more than leaves ahead of its receive
			var bufs []*buf
			for i := range n {
				a, b := l.tx.buf(size), l.rx.buf(size)
				a.fill(uint64(i))
				bufs = append(bufs, b)
				r, s := l.recvOp(1, b), l.sendOp(a, size, 1)
				for range 20 { // in vain
					if s.post() {
						break
					}
					e.must(s.err, "isend")
				}
				e.until(0, r.what, r.post)
				e.until(0, "a request from isend when the sender calls nothing else", func() bool { return s.req != 0 || s.keepUp(r) })
				e.run(r, s)
			}
			for i, b := range bufs {
				b.holds(size, uint64(i), fmt.Sprintf("message %d", i))
			}
		}},
	{ID: "send.each", Says: "two ranks that each post a receive and then do nothing but repeat isend both get on",
		Basis: basisProxy, Check: func(e *Env) {
			p, q := e.proc("rank 0"), e.proc("rank 1")
			there, back := e.join(p, q, 0), e.join(q, p, 0)
			const size = 30000 // more than leaves ahead of its receive
			for seed := range uint64(3) {
				a, b, c, d := p.buf(size), q.buf(size), q.buf(size), p.buf(size)
				a.fill(seed)
				c.fill(seed + 100)
				r, s := there.recvOp(1, b), there.sendOp(a, size, 1)
				r2, s2 := back.recvOp(1, d), back.sendOp(c, size, 1)
				e.until(0, r.what, r.post)
				e.until(0, r2.what, r2.post)
				e.until(0, "requests for both isends", func() bool {
					for _, o := range []*op{s, s2} {
						if o.req == 0 {
							o.post()
							e.must(o.err, "isend")
						}
					}
					return s.req != 0 && s2.req != 0
				})
				e.run(r, s, r2, s2)
				b.holds(size, seed, "message to rank 1")
				d.holds(size, seed+100, "message to rank 0")
			}
		}},
	{ID: "send.reuse", Says: "once a send is done, its memory may be overwritten",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			const size = 12 << 20
			a := l.tx.buf(size)
			for i := range uint64(2) {
				b := l.rx.buf(size)
				a.fill(i)
				r, s := l.recvOp(1, b), l.sendOp(a, size, 1)
				e.until(size, "send done", func() bool {
					if r.req == 0 {
						r.post()
					} else if !r.done && r.err == nil {
						r.test()
					}
					if s.req == 0 {
						s.post()
					} else {
						s.test()
					}
					e.must(s.err, "send")
					return s.done
				})
				a.fillByte(0xee)
				e.run(r)
				b.holds(size, i, "message whose memory was overwritten after done")
			}
		}},
	{ID: "test.after", Care: true, Says: "a request that was done is an error to test again, or stays done; never a crash",
		Basis: basisWeft, Check: func(e *Env) {
			l := e.self()
			r, s := l.recvOp(1, l.rx.buf(100)), l.sendOp(l.tx.buf(100), 100, 1)
			e.run(r, s)
			for range 3 {
				for _, o := range []*op{r, s} {
					_, err := l.tx.call(l.tx.net.Data, "test", host.Args{"req", o.req, "done", 0})
					e.alive(err, "test of a request that was done")
				}
			}
			l.move(1000, 1)
		}},
}
