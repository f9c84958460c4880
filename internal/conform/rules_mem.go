package conform

import (
	"fmt"

	"weft/internal/host"
)

var memRules = []*Rule{
	{ID: "mr.again", Says: "the same memory, and memory that overlaps, may be registered several times on one comm and on others",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.self()
			b := l.tx.buf(10000)
			var mhs []host.Ptr
			for i := range int64(4) {
				mh, err := l.tx.net.RegMr(l.send, b.addr+host.Ptr(i/2*100), 5000)
				e.must(err, fmt.Sprintf("regMr %d of overlapping memory", i+1))
				mhs = append(mhs, mh)
			}
			for _, mh := range mhs {
				e.must(l.tx.net.DeregMr(l.send, mh), "deregMr")
			}
			l.move(1000, 1)
		}},
	{ID: "mr.many", Says: "512 registrations stand on a comm at once and end in any order: user buffers are registered one by one",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.self()
			const n, size = 512, 4096
			b := l.tx.buf(n * size)
			for _, step := range []int{n - 1, 171} { // backwards, and about: both are prime to n
				mhs := make([]host.Ptr, n)
				for i := range mhs {
					var err error
					mhs[i], err = l.tx.net.RegMr(l.send, b.addr+host.Ptr(i*size), size)
					e.must(err, fmt.Sprintf("regMr %d of %d", i+1, n))
				}
				for i := range mhs {
					e.must(l.tx.net.DeregMr(l.send, mhs[(i+1)*step%n]), "deregMr")
				}
			}
			l.move(1000, 1)
		}},
	{ID: "mr.inside", Says: "data may lie anywhere inside registered memory",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			a, b := l.tx.buf(100000), l.rx.buf(100000)
			for _, off := range []int64{0, 1, 4096, 54321, 99000} {
				a.at(off).cut(1000).fill(uint64(off))
				b.fillByte(0x5c)
				r, s := l.recvOp(1, b), l.sendOp(a, 1000, 1)
				r.parts[0].Data, r.parts[0].Size = b.addr+host.Ptr(off), 1000
				s.parts[0].Data = a.addr + host.Ptr(off)
				e.run(r, s)
				b.at(off).holds(1000, uint64(off), "message at an offset of its registration")
			}
		}},
	{ID: "mr.room", Says: "a receive may say more room than is left of its registration: NCCL 2.12 and 2.13 say the eighth part of a whole pool of every buffer in it; a message that fits is received, and nothing behind it is touched",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			a := l.tx.buf(1000)
			a.fill(7)
			addr, err := l.rx.h.Alloc(100_000)
			e.must(err, "memory")
			b := &buf{l.rx, addr, 100_000}
			b.fillByte(0x5c)
			mh, err := l.rx.net.RegMr(l.recv, addr, 50_000)
			e.must(err, "regMr")
			r := &op{l: l, what: "irecv past the end of its registration", parts: []host.Recv{{Data: addr + 49_000, Size: 40_000, Tag: 1, MH: mh}}}
			e.run(r, l.sendOp(a, 1000, 1))
			b.at(49_000).holds(1000, 7, "message at the end of a registration")
			b.at(50_000).untouched(0x5c, "memory behind the registration")
			e.must(l.rx.net.DeregMr(l.recv, mh), "deregMr")
		}},
	{ID: "mr.large", From: 8, Says: "from v8 regMr's size is a size_t: 5 GiB register",
		Basis: basisHeader, Check: func(e *Env) {
			l := e.self()
			const size = 5 << 30
			addr, err := l.tx.h.Alloc(size, "guard", 1)
			if err != nil {
				e.skipf("no 5 GiB of address space: %v", err)
			}
			mh, err := l.tx.net.RegMr(l.send, addr, size)
			e.must(err, "regMr of 5 GiB")
			at := addr + host.Ptr(size-1000)
			e.must(l.tx.h.Fill(at, 1000, 1), "fill")
			b := l.rx.buf(1000)
			s := &op{l: l, sends: true, what: "isend from the end of 5 GiB", parts: []host.Recv{{Data: at, Size: 1000, Tag: 1, MH: mh}}}
			e.run(l.recvOp(1, b), s)
			b.holds(1000, 1, "message from the end of 5 GiB")
		}},
	{ID: "mr.concurrent", Says: "regMr and deregMr work on a comm while another thread is inside isend and test on it",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			const size = 1 << 20
			a, b, other := l.tx.buf(size), l.rx.buf(size), l.tx.buf(5000)
			a.fill(9)
			ops := []*op{l.recvOp(1, b), l.sendOp(a, size, 1)}
			e.until(0, ops[0].what, ops[0].post)
			e.until(0, ops[1].what, func() bool { return ops[1].keepUp(ops[0]) })
			for range 20 {
				mh, err := l.tx.net.RegMr(l.send, other.addr, other.size)
				e.must(err, "regMr with a request under way")
				ops[1].test()
				e.must(l.tx.net.DeregMr(l.send, mh), "deregMr with a request under way")
				if ops[1].done {
					break
				}
			}
			e.run(ops...)
			b.holds(size, 9, "message that was under way")
		}},
	{ID: "mr.dmabuf", From: 6, Says: "a device whose ptrSupport names NCCL_PTR_DMABUF registers memory at an offset of a DMA-BUF; the descriptor is closed straight after the call, and its number means something else",
		Basis: basisProxy, Check: func(e *Env) {
			tx, rx := e.two()
			for dev := range tx.ndev {
				x, err := tx.net.Props(dev)
				e.must(err, "getProperties")
				if x.PtrSupport&4 != 0 && tx.net.Slots["regMrDmaBuf"] {
					e.lend(e.join(tx, rx, dev))
					return
				}
			}
		}},
	{ID: "dereg.inflight", Says: "deregMr succeeds with requests under way: NCCL calls it before it closes the comms",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			a, b := l.tx.buf(4<<20), l.rx.buf(4<<20)
			r := l.recvOp(1, b)
			e.until(0, r.what, r.post)
			s := l.sendOp(a, a.size, 1)
			for range 50 {
				if s.post() {
					break
				}
			}
			e.must(l.tx.net.DeregMr(l.send, s.parts[0].MH), "deregMr of the sender")
			e.must(l.rx.net.DeregMr(l.recv, r.parts[0].MH), "deregMr of the receiver")
		}},
	{ID: "dereg.barrier", Says: "after deregMr nothing writes the memory any more, whatever the peer sends",
		Basis: basisProxy, Check: func(e *Env) {
			l := e.apart()
			const size = 1 << 20
			a, b := l.tx.buf(size), l.rx.buf(size)
			r := l.recvOp(1, b)
			e.until(0, r.what, r.post)
			if err := l.rx.net.DeregMr(l.recv, r.parts[0].MH); err != nil {
				e.alive(err, "deregMr")
				e.skipf("deregMr was refused")
			}
			b.fillByte(0x5c)
			// The receive is not tested any more; another one on the comm is.
			s, other := l.sendOp(a, size, 1), l.recvOp(1, l.rx.buf(size))
			for range 200 {
				for _, o := range []*op{s, other} {
					if o.err == nil && o.req == 0 {
						o.post()
					} else if o.err == nil && !o.done {
						o.test()
					}
				}
			}
			b.untouched(0x5c, "memory that was deregistered before the peer sent")
		}},
	{ID: "dereg.null", Care: true, Says: "deregMr of NULL is ncclSuccess: NCCL's own networks take it for a registration that was never made",
		Basis: basisNets, Check: func(e *Env) {
			l := e.self()
			for _, comm := range []host.Ptr{l.send, l.recv} {
				_, err := l.tx.call(l.tx.net.Setup, "deregMr", host.Args{"comm", comm, "mh", 0})
				e.must(err, "deregMr of NULL")
			}
			l.move(1000, 1)
		}},
	{ID: "dereg.bad", Care: true, Says: "a registration that does not exist, or no more, is an error to deregister, not a crash",
		Basis: basisWeft, Check: func(e *Env) {
			l := e.self()
			b := l.tx.buf(1000)
			mh, err := l.tx.net.RegMr(l.send, b.addr, b.size)
			e.must(err, "regMr")
			e.must(l.tx.net.DeregMr(l.send, mh), "deregMr")
			for range 2 {
				_, err := l.tx.call(l.tx.net.Setup, "deregMr", host.Args{"comm", l.send, "mh", mh})
				e.alive(err, "second deregMr")
			}
			l.move(1000, 1)
		}},
}

// lend moves data between parts of memory that descriptors name.
func (e *Env) lend(l *link) {
	const whole, at, size = 1 << 16, 4096 + 192, 10_000
	ops := []*op{{l: l, what: "irecv into a DMA-BUF"}, {l: l, sends: true, what: "isend from a DMA-BUF"}}
	bufs := map[*op]*buf{}
	for _, o := range ops {
		p, comm := o.proc(), o.end().comm
		b, own, real := p.exported(whole)
		copied, err := p.h.Call("main", "fd.dup", host.Args{"fd", own})
		e.must(err, "dup")
		fd := copied.Int("fd")
		r, err := p.call(p.net.Setup, "regMrDmaBuf", host.Args{"comm", comm, "data", b.addr + at, "size", size, "type", 2, "offset", at, "fd", fd})
		if err != nil && !real {
			e.skipf("no DMA-BUF can be made on this machine, and what is none was refused: %v", err)
		}
		e.must(err, "regMrDmaBuf")
		_, err = p.h.Call("main", "fd.close", host.Args{"fd", fd})
		e.must(err, "close of the descriptor")
		p.exported(whole) // takes its number
		b.fillByte(0x5c)
		bufs[o], o.parts = b, []host.Recv{{Data: b.addr + at, Size: size, Tag: 1, MH: r.Ptr("mh")}}
	}
	bufs[ops[1]].at(at).cut(size).fill(7)
	e.run(ops...)
	if req, err := l.rx.net.Iflush(l.recv, ops[0].parts); err != nil {
		e.must(err, "flush")
	} else if req != 0 {
		e.run(&op{l: l, what: "flush", parts: ops[0].parts, req: req})
	}
	b := bufs[ops[0]]
	b.at(at).holds(size, 7, "message between DMA-BUFs")
	b.cut(at).untouched(0x5c, "memory before the registered part")
	b.at(at+size).untouched(0x5c, "memory behind the registered part")
	for _, o := range ops {
		e.must(o.proc().net.DeregMr(o.end().comm, o.parts[0].MH), "deregMr")
	}
}

// exported is memory behind a descriptor of its own: a DMA-BUF, where one can be
// made, else a memfd, which simulated devices take for one.
func (p *proc) exported(size int64) (b *buf, fd int64, real bool) {
	r, err := p.h.Call("main", "mem.dmabuf", host.Args{"size", size})
	if real = !host.NoSlot(err); !real {
		r, err = p.h.Call("main", "mem.alloc", host.Args{"size", size, "shared", 1})
	}
	p.e.must(err, "memory behind a descriptor")
	return &buf{p, r.Ptr("addr"), size}, r.Int("fd"), real
}
