package conform

import (
	"fmt"

	"weft/internal/host"
)

var connRules = []*Rule{
	{ID: "connect.pending", Gate: true, From: 5, Says: "connect never blocks: while nobody accepts it returns ncclSuccess, with a comm or with NULL",
		Basis: basisDoc, Check: func(e *Env) {
			tx, rx := e.two()
			h, _ := rx.listen(0)
			to := e.carry(rx, h, tx)
			for range 20 {
				c, err := tx.net.Connect(0, to)
				e.must(err, "connect before any accept")
				if c != 0 {
					return
				}
			}
		}},
	{ID: "accept.pending", Gate: true, From: 5, Says: "accept never blocks: while nobody connects it returns ncclSuccess and NULL",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.proc("process")
			_, lc := p.listen(0)
			for range 20 {
				r, err := p.call(p.net.Setup, "accept", host.Args{"listen", lc})
				e.must(err, "accept with nobody connecting")
				if r.Ptr("comm") != 0 {
					e.failf("accept gave a comm although nobody connects")
				}
			}
		}},
	{ID: "blocking.comm", Gate: true, To: 4, Says: "up to v4 connect and accept return with the comm: NCCL 2.11 and older use it without looking",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			h, lc := rx.listen(0)
			to := e.carry(rx, h, tx)
			a := rx.h.Go("main", "net.accept", host.Args{"on", rx.net.As, "listen", lc})
			c, err := tx.net.Connect(0, to)
			e.must(err, "connect")
			r, err := a.Wait()
			e.must(err, "accept")
			if c == 0 || r.Ptr("comm") == 0 {
				e.failf("ncclSuccess with a NULL comm (connect %#x, accept %#x)", c, r.Ptr("comm"))
			}
		}},
	{ID: "blocking.order", Gate: true, To: 4, Says: "connect returns although nobody accepts: up to NCCL 2.11 all ranks connect on one thread before any accepts",
		Basis: basisProxy, Check: func(e *Env) {
			ranks := []*proc{e.proc("rank 0"), e.proc("rank 1"), e.proc("rank 2")}
			var handles, listens []host.Ptr
			for _, p := range ranks {
				h, lc := p.listen(0)
				handles, listens = append(handles, h), append(listens, lc)
			}
			var waits []*host.Pending
			for i, p := range ranks {
				next := (i + 1) % len(ranks)
				to := e.carry(ranks[next], handles[next], p)
				waits = append(waits, p.h.Go("main", "net.connect", host.Args{"on", p.net.As, "dev", 0, "handle", to}))
			}
			for i, w := range waits {
				_, err := w.Wait()
				e.must(err, ranks[i].name+": connect before any rank accepts")
			}
			for i, p := range ranks {
				_, err := p.call("main", "accept", host.Args{"listen", listens[i]})
				e.must(err, p.name+": accept")
			}
		}},
	{ID: "conn.once", Gate: true, Says: "listen, connect and accept, repeated while they return NULL, end in a connection between two processes",
		Basis: basisDoc, Check: func(e *Env) { e.apart() }},
	{ID: "conn.self", Gate: true, Says: "connect and accept polled in turn by one thread connect a process with itself: NCCL's GPU Direct probe does that",
		Basis: basisLoader, Check: func(e *Env) { e.self() }},
	{ID: "listen.room", Says: "the handle stays within NCCL_NET_HANDLE_MAXSIZE: 64 bytes up to v4, 128 from v5",
		Basis: basisHeader, Check: func(e *Env) {
			p := e.proc("process")
			n := int64(p.net.HandleSize())
			h := p.buf(n + 64)
			h.fillByte(0x77)
			_, err := p.call(p.net.Setup, "listen", host.Args{"ctx", p.net.Ctx, "dev", 0, "handle", h.addr})
			e.must(err, "listen")
			h.at(n).untouched(0x77, "memory behind the handle")
		}},
	{ID: "listen.devices", Says: "every device that devices counts can listen and connect",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.proc("process")
			for dev := range p.ndev {
				e.join(p, p, dev).move(100, uint64(dev))
			}
		}},
	{ID: "listen.beyond", Care: true, Says: "listen and connect of a device that devices does not count are errors and make nothing",
		Basis: basisWeft, Check: func(e *Env) {
			p := e.proc("process")
			h, lc := p.listen(0)
			for _, dev := range []int{-1, p.ndev, p.ndev + 1000} {
				if r, err := p.call(p.net.Setup, "listen", host.Args{"ctx", p.net.Ctx, "dev", dev, "handle", p.buf(256).addr}); err == nil || r.Ptr("comm") != 0 {
					e.failf("listen of device %d of %d: comm %#x, %v", dev, p.ndev, r.Ptr("comm"), err)
				}
				if r, err := p.call(p.net.Setup, "connect", host.Args{"ctx", p.net.Ctx, "dev", dev, "handle", h}); err == nil || r.Ptr("comm") != 0 {
					e.failf("connect by device %d of %d: comm %#x, %v", dev, p.ndev, r.Ptr("comm"), err)
				}
			}
			e.must(p.net.CloseListen(lc), "closeListen")
			e.join(p, p, 0).move(1000, 1)
		}},
	{ID: "connect.handle", Says: "once connected, the plugin leaves the handle's memory alone: NCCL frees it",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			e.must(l.tx.h.Free(l.handle), "free of the handle")
			l.move(1000, 1)
			l.move(100000, 2)
		}},
	{ID: "accept.closelisten", Says: "closing the listenComm right after accept leaves the connection alone",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			e.must(l.rx.net.CloseListen(l.listen), "closeListen")
			l.move(1000, 1)
		}},
	{ID: "connect.nodevcomm", From: 7, Says: "sendDevComm and recvDevComm may be NULL: the GPU Direct probe passes NULL",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			h, lc := p.listen(0)
			var s, r host.Ptr
			e.until(0, "connect and accept with NULL device comms", func() bool {
				if s == 0 {
					x, err := p.call(p.net.Setup, "connect", host.Args{"ctx", p.net.Ctx, "dev", 0, "handle", h, "devcomm", 0})
					e.must(err, "connect with sendDevComm NULL")
					s = x.Ptr("comm")
				}
				if r == 0 {
					x, err := p.call(p.net.Setup, "accept", host.Args{"listen", lc, "devcomm", 0})
					e.must(err, "accept with recvDevComm NULL")
					r = x.Ptr("comm")
				}
				return s != 0 && r != 0
			})
		}},
	{ID: "connect.noconfig", From: 10, To: 10, Says: "connect's config may be NULL: the GPU Direct probe of NCCL 2.26 passes NULL",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			h, lc := p.listen(0)
			var s, r host.Ptr
			e.until(0, "connect with a NULL config", func() bool {
				if s == 0 {
					x, err := p.call(p.net.Setup, "connect", host.Args{"ctx", p.net.Ctx, "dev", 0, "handle", h, "config", 0})
					e.must(err, "connect with config NULL")
					s = x.Ptr("comm")
				}
				if r == 0 {
					x, err := p.call(p.net.Setup, "accept", host.Args{"listen", lc})
					e.must(err, "accept")
					r = x.Ptr("comm")
				}
				return s != 0 && r != 0
			})
		}},
	{ID: "conn.listens", Says: "several listens of one device wait at once, each with a handle of its own, and each connect reaches the one that its handle is of",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			const n = 6
			var links [n]*link
			seen := map[string]int{}
			for i := range links {
				h, lc := rx.listen(0)
				b, err := rx.h.Read(h, int64(rx.net.HandleSize()))
				e.must(err, "read of the handle")
				if other, ok := seen[string(b)]; ok {
					e.failf("listens %d and %d have the same handle", other+1, i+1)
				}
				seen[string(b)] = i
				links[i] = &link{e: e, tx: tx, rx: rx, listen: lc, handle: e.carry(rx, h, tx), mrs: map[mrKey]host.Ptr{}}
			}
			for i := range links {
				links[n-1-i].meet(0)
			}
			var ops []*op
			var bufs [n]*buf
			for i, l := range links {
				a := tx.buf(3000)
				a.fill(uint64(i))
				bufs[i] = rx.buf(3000)
				ops = append(ops, l.recvOp(1, bufs[i]), l.sendOp(a, 3000, 1))
			}
			e.run(ops...)
			for i, b := range bufs {
				b.holds(3000, uint64(i), "message of its own listen")
			}
		}},
	{ID: "conn.many", Says: "many connections stand side by side and do not mix: 32 between two processes",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			var links []*link
			for range 32 {
				links = append(links, e.join(tx, rx, 0))
			}
			var ops []*op
			var bufs []*buf
			for i, l := range links {
				a, b := tx.buf(3000), rx.buf(3000)
				a.fill(uint64(i))
				bufs = append(bufs, b)
				ops = append(ops, l.recvOp(1, b), l.sendOp(a, 3000, 1))
			}
			e.run(ops...)
			for i, b := range bufs {
				b.holds(3000, uint64(i), "message of its own connection")
			}
		}},
	{ID: "conn.again", Says: "connections come and go between two processes that stay joined by another: 12 rounds, data moves on both",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			stays := e.join(tx, rx, 0)
			for i := range uint64(12) {
				l := e.join(tx, rx, 0)
				l.move(100_000, i)
				stays.move(1000, i)
				for _, c := range closes {
					e.must(l.closing(c), fmt.Sprintf("%s of connection %d", c, i+1))
				}
			}
		}},
	{ID: "connect.abandon", From: 5, Says: "a connect that is begun and given up, and a listen that nobody accepts on, disturb nothing",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			for range 5 {
				h, lc := rx.listen(0)
				to := e.carry(rx, h, tx)
				_, err := tx.net.Connect(0, to)
				e.must(err, "connect")
				e.must(tx.h.Free(to), "free of the handle")
				e.must(rx.net.CloseListen(lc), "closeListen with a connect under way")
			}
			e.join(tx, rx, 0).move(1000, 1)
		}},
	{ID: "connect.badhandle", Care: true, Says: "a handle that no listen wrote is an error, not a crash",
		Basis: basisWeft, Check: func(e *Env) {
			p := e.proc("process")
			h := p.buf(256)
			for seed := range uint64(4) {
				h.fill(seed)
				var c host.Ptr
				e.until(0, "an error from connect", func() bool {
					r, err := p.call(p.net.Setup, "connect", host.Args{"ctx", p.net.Ctx, "dev", 0, "handle", h.addr})
					c = r.Ptr("comm")
					return host.Code(err) != host.Success || c != 0
				})
				if c != 0 {
					e.failf("connect to random bytes gave a comm")
				}
			}
		}},
}
