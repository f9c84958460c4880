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
}
