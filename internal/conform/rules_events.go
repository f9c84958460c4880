package conform

import (
	"fmt"

	"weft/internal/host"
)

var eventRules = []*Rule{
	{ID: "prof.pairs", From: 10, Says: "the profiler's callback gets a handle that NCCL passed, never NULL, and an end for each start; at most 8 starts a request",
		Basis: basisProxy, Check: func(e *Env) { e.profiled() }},
	{ID: "prof.describes", From: 10, Says: "a net event names a QP or a socket and the bytes on it, in the descriptor of NCCL's own network; those of a send are its bytes, and each ends once",
		Basis: basisProxy, Check: func(e *Env) { e.described() }},
}

// netEvents lists the events of a request that was given the handle at parent.
func (p *proc) netEvents(parent host.Ptr) (events []netEvent) {
	r, err := p.h.Call("main", "net.profiled", host.Args{"parent", parent})
	p.e.must(err, "events of the profiler's callback")
	all := map[string][]int64{}
	for _, field := range []string{"id", "type", "device", "op", "qp", "length", "last", "stops"} {
		all[field] = r.Ints(field)
	}
	for i, id := range all["id"] {
		at := func(field string) int64 { return all[field][i] }
		events = append(events, netEvent{id, at("type"), at("device"), at("op"), at("qp"), at("length"), at("last"), at("stops")})
	}
	return events
}

// netEvent is a start with what came of it; last is the length of its update, or 0.
type netEvent struct{ id, typ, device, op, qp, length, last, stops int64 }

// kind is the network that describes the event, "" for one that is not NCCL's.
func (n *netEvent) kind() string {
	switch {
	case n.id == 0x10001 && n.typ == 1:
		return "QP"
	case n.id == 0x20001 && n.typ == 1:
		return "socket"
	}
	return ""
}

// eventsOf checks what was said of a request of that size.
func (p *proc) eventsOf(what string, parent host.Ptr, size int64, sends bool) {
	e, events, sum := p.e, p.netEvents(parent), int64(0)
	if len(events) > 8 {
		e.failf("%s has %d events", what, len(events))
	}
	for i := range events {
		n := &events[i]
		sum += n.length
		switch {
		case n.kind() == "":
			e.failf("%s: plugin id %#x, type %d is no descriptor of NCCL's", what, n.id, n.typ)
		case n.kind() == "QP" && n.qp <= 0, n.device < 0:
			e.failf("%s: a %s with number %d on device or descriptor %d", what, n.kind(), n.qp, n.device)
		case n.stops != 1:
			e.failf("%s: an event ends %d times", what, n.stops)
		case !sends && n.last != 0 && n.last != size:
			e.failf("%s: its event says %d bytes at the end", what, n.last)
		}
	}
	if sends && len(events) > 0 && sum != size {
		e.failf("%s: its %d events say %d bytes", what, len(events), sum)
	}
}

// described moves messages of several sizes, alone and in a group, and reads what their events say.
func (e *Env) described() {
	p := e.open("process")
	p.init("prof", 1)
	l := e.join(p, p, 0)
	handles := p.buf(4096)
	handles.fillByte(1) // NCCL's have a pointer in the second word, or the profiler wants none
	next := int64(0)
	handle := func() host.Ptr {
		next += 64
		return handles.at(next).addr
	}
	for _, size := range []int64{1, 5000, 300000, 3 << 20} {
		a, b := p.buf(size), p.buf(size+100)
		r, s := l.recvOp(1, b), l.sendOp(a, size, 1)
		ph := []host.Ptr{handle(), handle()}
		s.extra, r.parts[0].PH = []any{"ph", ph[0]}, ph[1]
		e.run(r, s)
		p.eventsOf(fmt.Sprintf("send of %d bytes", size), ph[0], size, true)
		p.eventsOf(fmt.Sprintf("receive of %d bytes into %d", size, size+100), ph[1], size, false)
	}
	n, bufs := e.group(l, 200000)
	r := l.recvOp(1, bufs...)
	ops := []*op{r}
	phs := map[host.Ptr]int64{}
	for i := range n {
		size := int64(200000 - 1000*i)
		a := p.buf(size)
		s := l.sendOp(a, size, 1+i)
		ph := handle()
		s.extra, phs[ph] = []any{"ph", ph}, size
		r.parts[i].PH = handle()
		ops = append(ops, s)
	}
	e.run(ops...)
	for ph, size := range phs {
		p.eventsOf(fmt.Sprintf("send of %d bytes in a group of %d", size, n), ph, size, true)
	}
	for i, part := range r.parts {
		p.eventsOf(fmt.Sprintf("receive %d of %d", i, n), part.PH, int64(200000-1000*i), false)
	}
}

// profiled moves messages with and without profiler handles and looks at the callbacks.
func (e *Env) profiled() {
	p := e.open("process")
	p.init("prof", 1)
	l := e.join(p, p, 0)
	passed := p.buf(64)
	passed.fillByte(1)
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
