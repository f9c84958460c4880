package conform

import (
	"fmt"
	"strings"

	"weft/internal/host"
)

// closing closes one object of a link, or deregisters its memory.
func (l *link) closing(what string) error {
	switch what {
	case "closeListen":
		return l.rx.net.CloseListen(l.listen)
	case "closeSend":
		return l.tx.net.CloseSend(l.send)
	case "closeRecv":
		return l.rx.net.CloseRecv(l.recv)
	}
	panic(what)
}

// leave sends n messages of size bytes, closes the sender and ends its process as soon as they are done, and requires every byte
// at the receiver.
func (l *link) leave(n int, size int64) {
	e := l.e
	var recvs, sends []*op
	var bufs []*buf
	for i := range n {
		b := l.rx.buf(size)
		bufs = append(bufs, b)
		recvs = append(recvs, l.recvOp(1, b))
		sends = append(sends, l.pattern(size, uint64(i), 1))
	}
	// One receive more than messages: its credit reaches a sender that is closing.
	recvs = append(recvs, l.recvOp(1, l.rx.buf(10)))
	e.until(int64(n)*size, "all sends done", func() bool {
		_, err := round(recvs)
		e.must(err, "receiver")
		for range 30 { // ahead of the receiver, so that much is still under way at the end
			sent, err := round(sends)
			e.must(err, "sender")
			if sent {
				return true
			}
		}
		return false
	})
	e.must(l.tx.net.CloseSend(l.send), "closeSend")
	e.must(l.tx.h.Exit("exit", 0), "end of the sender's process")
	e.run(recvs[:n]...)
	for i, b := range bufs {
		b.holds(size, uint64(i), fmt.Sprintf("message %d of %d, %d bytes each, of a sender that has left", i, n, size))
	}
}

func permutations(list []string) [][]string {
	if len(list) < 2 {
		return [][]string{list}
	}
	var out [][]string
	for i, x := range list {
		rest := append(append([]string{}, list[:i]...), list[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]string{x}, p...))
		}
	}
	return out
}

var closes = []string{"closeListen", "closeSend", "closeRecv"}

var closeRules = []*Rule{
	{ID: "close.order", Says: "comms close in any order, after traffic and with nothing under way",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.proc("process")
			for _, order := range permutations(closes) {
				l := e.join(p, p, 0)
				l.move(5000, 1)
				for _, c := range order {
					e.must(l.closing(c), fmt.Sprintf("%s in the order %s", c, strings.Join(order, ", ")))
				}
			}
		}},
	{ID: "close.inflight", Says: "comms close in any order with requests under way",
		Basis: basisProxy, Check: func(e *Env) {
			p := e.proc("process")
			for _, order := range permutations(closes) {
				l := e.join(p, p, 0)
				a, b := l.tx.buf(1<<20), l.rx.buf(1<<20)
				r, r2, s := l.recvOp(1, b), l.recvOp(1, b), l.sendOp(a, a.size, 1)
				e.until(0, r.what, r.post)
				r2.post()
				for range 30 {
					if s.post() {
						break
					}
				}
				for _, c := range order {
					e.must(l.closing(c), fmt.Sprintf("%s with requests under way in the order %s", c, strings.Join(order, ", ")))
				}
			}
		}},
	{ID: "close.unused", Says: "a connection that was never used closes",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			for _, c := range closes {
				e.must(l.closing(c), c)
			}
		}},
	{ID: "close.data", Says: "a sender may close and leave as soon as its sends are done: every byte still arrives",
		Basis: basisProxy, Check: func(e *Env) {
			// First what the kernel's buffers hold: the sender closes before the receiver has read any of it. Then more than that.
			for _, m := range []struct {
				n    int
				size int64
			}{{2, 256 << 10}, {8, 1 << 20}} {
				e.apart().leave(m.n, m.size)
			}
		}},
	{ID: "close.peer", Says: "a receive whose sender has closed without sending is never done",
		Basis: basisDoc, Check: func(e *Env) {
			l := e.apart()
			l.move(1000, 1)
			r := l.recvOp(1, l.rx.buf(1000))
			e.until(0, r.what, r.post)
			if err := l.tx.net.CloseSend(l.send); err != nil {
				e.alive(err, "closeSend")
			}
			for range 500 {
				if r.test() {
					e.failf("done, %v bytes, although nothing was sent", r.sizes)
				}
				if r.err != nil {
					return
				}
			}
		}},
	{ID: "close.twice", Care: true, Says: "closing twice is an error, not a crash, and hurts no other connection",
		Basis: basisWeft, Check: func(e *Env) {
			p := e.proc("process")
			l, other := e.join(p, p, 0), e.join(p, p, 0)
			for _, c := range closes {
				e.alive(l.closing(c), c)
			}
			for range 2 {
				for _, c := range closes {
					e.alive(l.closing(c), "second "+c)
				}
			}
			other.move(1000, 1)
		}},
	{ID: "close.null", Says: "closing NULL is ncclSuccess: NCCL 2.14 and older, and a bootstrap over the network, close what they have of a connection that was begun, and stop at an error",
		Basis: basisProxy, Check: func(e *Env) {
			p := e.proc("process")
			for _, slot := range []string{"closeSend", "closeRecv", "closeListen"} {
				_, err := p.call(p.net.Setup, slot, host.Args{"comm", 0})
				e.must(err, slot+" of NULL")
			}
			e.join(p, p, 0).move(1000, 1)
		}},
	{ID: "close.foreign", Care: true, Says: "calls on a comm that was never opened, or is of the other kind, are errors, not crashes",
		Basis: basisWeft, Check: func(e *Env) {
			l := e.self()
			p := l.tx
			b := p.buf(100)
			for _, bad := range []host.Ptr{0, 1, 2, 0xdeadbeef, l.recv} {
				for slot, a := range map[string]host.Args{
					"isend":     {"comm", bad, "data", b.addr, "size", 10, "tag", 1, "mh", 0},
					"regMr":     {"comm", bad &^ l.recv, "data", b.addr, "size", 10},
					"closeSend": {"comm", bad},
				} {
					if _, err := p.call(p.net.Setup, slot, a); host.Code(err) == host.Success && bad != l.recv && (bad != 0 || slot != "closeSend") {
						e.failf("%s on comm %#x: ncclSuccess", slot, bad)
					}
				}
			}
		}},
}
