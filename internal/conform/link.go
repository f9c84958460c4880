package conform

import (
	"fmt"

	"weft/internal/host"
)

// link is one connection: tx sends to rx.
type link struct {
	e          *Env
	tx, rx     *proc
	send, recv host.Ptr
	listen     host.Ptr
	handle     host.Ptr
	mrs        map[mrKey]host.Ptr
}

type mrKey struct {
	end
	addr host.Ptr
	size int64
}

// listen opens a rendezvous; the handle's buffer has room to spare (see listen.room).
func (p *proc) listen(dev int) (handle, comm host.Ptr) {
	h := p.buf(256)
	r, err := p.call(p.net.Setup, "listen", host.Args{"ctx", p.net.Ctx, "dev", dev, "handle", h.addr})
	p.e.must(err, "listen")
	if r.Ptr("comm") == 0 {
		p.e.failf("listen: ncclSuccess with listenComm NULL")
	}
	return h.addr, r.Ptr("comm")
}

// carry copies a handle into another process, as the bootstrap does.
func (e *Env) carry(from *proc, handle host.Ptr, to *proc) host.Ptr {
	n := int64(from.net.HandleSize())
	b, err := from.h.Read(handle, n)
	e.must(err, "read of the handle")
	copied := to.buf(n)
	e.must(to.h.Write(copied.addr, b), "copy of the handle")
	return copied.addr
}

// join connects two processes, each polling on its own; tx and rx may be one.
func (e *Env) join(tx, rx *proc, dev int) *link {
	h, lc := rx.listen(dev)
	l := &link{e: e, tx: tx, rx: rx, listen: lc, mrs: map[mrKey]host.Ptr{}}
	l.handle = e.carry(rx, h, tx)
	if tx == rx {
		var err error
		l.send, l.recv, err = tx.net.ConnectAccept(dev, l.handle, lc, e.o.Patience)
		e.must(err, "connect and accept")
		return l
	}
	l.meet(dev)
	return l
}

// meet connects and accepts what listens already, in two processes.
func (l *link) meet(dev int) {
	e, tx, rx := l.e, l.tx, l.rx
	c := tx.h.Go(tx.net.Setup, "net.connect", host.Args{"on", tx.net.As, "ctx", tx.net.Ctx, "dev", dev, "handle", l.handle, "poll", 1, "limit", e.o.Patience})
	a := rx.h.Go(rx.net.Setup, "net.accept", host.Args{"on", rx.net.As, "listen", l.listen, "poll", 1, "limit", e.o.Patience})
	r, err := c.Wait()
	e.must(err, "connect")
	l.send = r.Ptr("comm")
	r, err = a.Wait()
	e.must(err, "accept")
	l.recv = r.Ptr("comm")
}

// self is a process connected to itself.
func (e *Env) self() *link {
	p := e.proc("process")
	return e.join(p, p, 0)
}

// apart is two processes connected.
func (e *Env) apart() *link {
	tx, rx := e.two()
	return e.join(tx, rx, 0)
}

// mr registers b on one end's comm, once.
func (l *link) mr(p *proc, comm host.Ptr, b *buf) host.Ptr {
	k := mrKey{end{p, comm}, b.addr, b.size}
	if l.mrs[k] == 0 {
		mh, err := p.net.RegMr(comm, b.addr, b.size)
		l.e.must(err, "regMr")
		l.mrs[k] = mh
	}
	return l.mrs[k]
}

// op is one isend or irecv on its way.
type op struct {
	l     *link
	sends bool
	parts []host.Recv // one for a send
	what  string
	extra []any
	req   host.Ptr
	done  bool
	sizes []int64
	err   error
}

// sendOp sends the first size bytes of b, which is registered whole.
func (l *link) sendOp(b *buf, size int64, tag int) *op {
	return &op{l: l, sends: true, what: fmt.Sprintf("isend of %d bytes", size),
		parts: []host.Recv{{Data: b.addr, Size: size, Tag: tag, MH: l.mr(l.tx, l.send, b)}}}
}

// recvOp receives into the whole of each buffer, tags counting from tag.
func (l *link) recvOp(tag int, bufs ...*buf) *op {
	o := &op{l: l, what: fmt.Sprintf("irecv of %d buffers", len(bufs))}
	for i, b := range bufs {
		o.parts = append(o.parts, host.Recv{Data: b.addr, Size: b.size, Tag: tag + i, MH: l.mr(l.rx, l.recv, b)})
	}
	return o
}

// post tries once; false means that the plugin returned NULL.
func (o *op) post() bool {
	if o.sends {
		p := o.parts[0]
		o.req, o.err = o.l.tx.net.Isend(o.l.send, p.Data, p.Size, p.Tag, p.MH, o.extra...)
	} else {
		o.req, o.err = o.l.rx.net.Irecv(o.l.recv, o.parts, o.extra...)
	}
	o.l.e.alive(o.err, o.what)
	return o.req != 0
}

func (o *op) proc() *proc {
	if o.sends {
		return o.l.tx
	}
	return o.l.rx
}

// test calls test once.
func (o *op) test() bool {
	n := len(o.parts)
	var r *host.Reply
	r, o.err = o.proc().call(o.proc().net.Data, "test", host.Args{"req", o.req, "n", n, "done", 0})
	o.done, o.sizes = o.err == nil && r.Int("done") != 0, r.Ints("size")
	return o.done
}

// end names the comm that the op works on: values repeat between processes.
type end struct {
	p    *proc
	comm host.Ptr
}

func (o *op) end() end {
	if o.sends {
		return end{o.l.tx, o.l.send}
	}
	return end{o.l.rx, o.l.recv}
}

// round does what NCCL's progress threads do once: on each comm post what comes
// next and test the oldest request, never a younger one. It tells whether all are done.
func round(ops []*op) (all bool, failed error) {
	posts, tests := map[end]bool{}, map[end]bool{}
	all = true
	for _, o := range ops {
		if o.done {
			continue
		}
		if c := o.end(); o.req == 0 && !posts[c] {
			posts[c] = !o.post()
		} else if o.req != 0 && !tests[c] {
			tests[c] = true
			o.test()
		}
		if o.err != nil {
			return false, fmt.Errorf("%s: %w", o.what, o.err)
		}
		all = all && o.done
	}
	return all, nil
}

// keepUp tries a send while its receiver does what NCCL's would: test its receives.
func (o *op) keepUp(recvs ...*op) bool {
	_, err := round(recvs)
	o.l.e.must(err, "receiver")
	ok := o.post()
	o.l.e.must(o.err, o.what)
	return ok
}

// try goes round after round until all ops are done or one has failed.
func (e *Env) try(ops ...*op) (failed error) {
	var bytes int64
	for _, o := range ops {
		bytes += o.parts[0].Size
	}
	e.until(bytes, what(ops), func() bool {
		var all bool
		all, failed = round(ops)
		return all || failed != nil
	})
	return failed
}

// run is try where nothing may fail.
func (e *Env) run(ops ...*op) { e.must(e.try(ops...), "transfer") }

func what(ops []*op) string {
	if len(ops) == 1 {
		return ops[0].what
	}
	return fmt.Sprintf("%s and %d more operations", ops[0].what, len(ops)-1)
}

// move sends one message over the link and checks its bytes.
func (l *link) move(size int64, seed uint64) {
	a, b := l.tx.buf(max(size, 1)), l.rx.buf(max(size, 1))
	a.fill(seed)
	b.fillByte(0x5c)
	l.e.run(l.recvOp(1, b), l.sendOp(a, size, 1))
	b.holds(size, seed, fmt.Sprintf("message of %d bytes", size))
}
