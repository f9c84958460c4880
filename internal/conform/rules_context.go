package conform

import (
	"weft/internal/host"
)

var contextRules = []*Rule{
	{ID: "ctx.apart", From: 11, Says: "contexts are independent: ending one leaves the other's connections and calls alone",
		Basis: basisHeader, Check: func(e *Env) {
			p := e.proc("process")
			first := p.net.Ctx
			e.must(p.net.Init("commId", 2), "second init")
			second := p.net.Ctx
			l := e.join(p, p, 0)
			l.move(1000, 1)
			_, err := p.call("main", "finalize", host.Args{"ctx", first})
			e.must(err, "finalize of the first context")
			l.move(1000, 2)
			p.net.Ctx = second
			e.join(p, p, 0).move(1000, 3)
		}},
	{ID: "ctx.shared", From: 11, Says: "a split communicator uses its parent's context without an init of its own, from threads of its own",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			parent := e.join(p, p, 0)
			split := *p
			split.net = p.net.On("split")
			child := e.join(&split, &split, 0)
			parent.move(1000, 1)
			child.move(1000, 2)
		}},
	{ID: "finalize.done", From: 11, Says: "finalize succeeds with all comms closed",
		Basis: basisHeader, Check: func(e *Env) {
			l := e.self()
			l.move(1000, 1)
			for _, c := range closes {
				e.alive(l.closing(c), c)
			}
			e.must(l.tx.net.Finalize(), "finalize")
		}},
	{ID: "finalize.open", From: 11, Says: "finalize succeeds with listens and connects that were given up",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			h, _ := rx.listen(0)
			to := e.carry(rx, h, tx)
			_, err := tx.net.Connect(0, to)
			e.must(err, "connect")
			e.must(tx.net.Finalize(), "finalize of the connecting side")
			e.must(rx.net.Finalize(), "finalize of the listening side")
		}},
	{ID: "finalize.null", From: 11, Says: "finalize gets the context as init left it, NULL included: NCCL 2.28.3 calls it when init failed",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			_, err := p.call("main", "finalize", host.Args{"ctx", 0})
			e.alive(err, "finalize of NULL")
			e.join(p, p, 0).move(1000, 1)
		}},
	{ID: "finalize.init", From: 11, Says: "after the last finalize, init starts afresh",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			for range 3 {
				l := e.join(p, p, 0)
				l.move(1000, 1)
				for _, c := range closes {
					e.alive(l.closing(c), c)
				}
				e.alive(p.net.Finalize(), "finalize")
				e.must(p.net.Init(), "init after finalize")
			}
			e.join(p, p, 0).move(1000, 2)
		}},
	{ID: "attr.set", From: 11, Says: "setNetAttr, where it is set, takes any attributes",
		Basis: basisHeader, Check: func(e *Env) {
			p := e.proc("process")
			if !p.net.Slots["setNetAttr"] {
				e.skipf("setNetAttr is NULL")
			}
			for _, attr := range [][]int{{-1, -1, -1, -1, -1, -1, -1, -1}, {8, 1, 4, 1, 8, 1, 4, 1}, {0, 0, 0, 0, 0, 0, 0, 0}} {
				_, err := p.call(p.net.Setup, "setNetAttr", host.Args{"ctx", p.net.Ctx, "op", 1, "attr", attr})
				e.must(err, "setNetAttr")
			}
			e.join(p, p, 0).move(1000, 1)
		}},
	{ID: "prof.pairs", From: 10, Says: "the profiler's callback gets a handle that NCCL passed, never NULL, and an end for each start; at most 8 starts a request",
		Basis: basisProxy, Check: func(e *Env) { e.profiled() }},
}

// profiled moves messages with and without profiler handles and looks at the callbacks.
func (e *Env) profiled() {
	p := e.open("process")
	p.init("prof", 1)
	l := e.join(p, p, 0)
	passed := p.buf(64)
	for i := range 4 {
		a, b := p.buf(300000), p.buf(300000)
		r, s := l.recvOp(1, b), l.sendOp(a, 300000, 1)
		if i%2 == 1 {
			s.extra = []any{"ph", passed.addr}
			r.parts[0].PH = passed.addr
		}
		e.run(r, s)
	}
	c, err := p.h.Call("main", "net.profiled", nil)
	e.must(err, "counts of the profiler's callback")
	starts := c.Int("start")
	if n := c.Int("null"); n > 0 {
		e.failf("%d events with a NULL handle; NCCL would follow it", n)
	}
	if n := c.Int("stop"); n != starts {
		e.failf("%d starts but %d stops although all requests are done", starts, n)
	}
	if starts > 4*8 {
		e.failf("%d events for 4 requests with a handle", starts)
	}
}
