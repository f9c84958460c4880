package conform

import "weft/internal/host"

// legal tells whether a table's callers know the code.
func legal(version int, c host.Result) bool {
	switch c {
	case host.Success, host.UnhandledCudaError, host.SystemError, host.InternalError, host.InvalidUsage:
		return true
	case host.RemoteError:
		return version >= host.SinceRemoteError
	}
	return false
}

// postsTo posts to a peer that has gone, until test has told of it twice: what is posted after that is taken, too. That test tells
// of it at all is for other rules.
func (l *link) postsTo(gone string, next func() *op) {
	o, told := next(), 0
	l.e.within(l.e.o.Patience, func() bool {
		if o.req == 0 {
			if o.post(); o.err != nil {
				l.e.failf("%s after the %s had gone returned %v itself", o.what, gone, host.Code(o.err))
			}
			return false
		}
		o.test()
		if o.err != nil {
			told++
		}
		if o.err != nil || o.done {
			o = next()
		}
		return told == 2
	})
}

var failRules = []*Rule{
	{ID: "dead.error", Says: "when the peer's process dies, requests under way end in an error: none is done, none waits for ever",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			l.move(1000, 1)
			r := l.recvOp(1, l.rx.buf(1000))
			e.until(0, r.what, r.post)
			l.tx.h.Kill()
			e.until(0, "an error from test after the sender's death", func() bool {
				if r.test() {
					e.failf("done after the sender's death, %v bytes", r.sizes)
				}
				return r.err != nil
			})
		}},
	{ID: "dead.sender", Says: "a sender whose receiver died gets an error from isend or test, and no SIGPIPE",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			l.move(1000, 1)
			l.rx.h.Kill()
			a := l.tx.buf(1 << 20)
			var codes []error
			e.until(0, "an error from isend or test after the receiver's death", func() bool {
				s := l.sendOp(a, a.size, 1)
				for range 20 {
					if s.req == 0 {
						s.post()
					} else if !s.done {
						s.test()
					}
					if s.err != nil {
						codes = append(codes, s.err)
						return true
					}
				}
				return false
			})
		}},
	{ID: "dead.posted", Care: true, Says: "isend and irecv on a connection whose peer has gone are taken: the error is test's to tell",
		Basis: basisNets, Check: func(e *Env) {
			for _, leave := range []func(l *link, gone *proc, c string) error{
				func(_ *link, gone *proc, _ string) error { gone.h.Kill(); return nil },
				func(l *link, _ *proc, c string) error { return l.closing(c) },
			} {
				l := e.apart()
				l.move(1000, 1)
				e.alive(leave(l, l.tx, "closeSend"), "closeSend")
				l.postsTo("sender", func() *op { return l.recvOp(1, l.rx.buf(1000)) })

				l = e.apart()
				l.move(1000, 1)
				for range 4 { // for a plugin whose sends wait for their receives
					r := l.recvOp(1, l.rx.buf(1000))
					e.until(0, r.what, r.post)
					r.test()
				}
				e.alive(leave(l, l.rx, "closeRecv"), "closeRecv")
				l.postsTo("receiver", func() *op { return l.sendOp(l.tx.buf(1000), 1000, 1) })
			}
		}},
	{ID: "dead.others", Says: "the death of one peer leaves connections with others alone",
		Basis: basisProxy, Check: func(e *Env) {
			p, q, r := e.proc("rank 0"), e.proc("rank 1"), e.proc("rank 2")
			dying, living := e.join(q, p, 0), e.join(r, p, 0)
			dying.move(1000, 1)
			o := dying.recvOp(1, p.buf(1000))
			e.until(0, o.what, o.post)
			q.h.Kill()
			for range 100 {
				if o.err == nil && !o.done {
					o.test()
				}
			}
			living.move(5000, 2)
		}},
	{ID: "codes.legal", Says: "errors are ncclSystemError, ncclInternalError, ncclInvalidUsage, ncclUnhandledCudaError or, from v6, ncclRemoteError; ncclInvalidArgument is the core's",
		Basis: basisDoc, Check: func(e *Env) {
			tx, rx := e.two()
			l := e.join(tx, rx, 0)
			var bad []string
			note := func(what string, err error) {
				e.alive(err, what)
				if c := host.Code(err); !legal(e.version, c) {
					bad = append(bad, what+": "+c.String())
				}
			}
			_, err := rx.call("main", "props", host.Args{"dev", rx.ndev + 3})
			note("getProperties of no device", err)
			h := rx.buf(256)
			_, err = rx.call(rx.net.Setup, "listen", host.Args{"ctx", rx.net.Ctx, "dev", rx.ndev + 3, "handle", h.addr})
			note("listen on no device", err)
			big, small := tx.buf(8192), rx.buf(1000)
			r, s := l.recvOp(1, small), l.sendOp(big, 8192, 1)
			e.attempt(r, s)
			note("isend larger than its receive", s.err)
			note("receive of a larger send", r.err)
			l = e.join(tx, rx, 0)
			r = l.recvOp(1, small)
			e.until(0, r.what, r.post)
			tx.h.Kill()
			for range 2000 {
				if r.test(); r.err != nil {
					break
				}
			}
			note("test after the peer's death", r.err)
			if bad != nil {
				e.failf("%v", bad)
			}
		}},
}
