package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/internal/host"
)

// bond is two processes that connect, move data and close again and again. Each
// has plain memory and memory behind a descriptor, which stands in for a DMA-BUF.
type bond struct {
	w      *world
	tx, rx *end
	grows  bool // further lanes join in the middle of each connection
	mark   int  // of tx, when the last one began
}

// end is one process of a bond.
type end struct {
	*peer
	plain, shared host.Ptr
	fd            int64
}

const (
	bondSize  = 256 << 10
	bondShift = 4096 + 192 // of the DMA-BUF's registration in its descriptor
)

func (w *world) bond(env ...string) *bond {
	w.t.Helper()
	return &bond{w: w, tx: w.end(w.start("simA", newest, env...)), rx: w.end(w.start("simB", newest, env...))}
}

func (w *world) end(p *peer) *end {
	w.t.Helper()
	e := &end{peer: p}
	var err error
	e.plain, err = p.h.Alloc(bondSize)
	must(w.t, err, "memory")
	r, err := p.h.Call("main", "mem.alloc", host.Args{"size", bondSize, "shared", 1})
	must(w.t, err, "shared memory")
	e.shared, e.fd = r.Ptr("addr"), r.Int("fd")
	return e
}

// step is an error and where it came from.
type step struct {
	side string // the device of the process
	what string
	err  error
}

func (s step) Error() string { return fmt.Sprintf("%s: %s: %v", s.side, s.what, s.err) }
func (s step) Unwrap() error { return s.err }

// life is one connection from listen to close, as far as it comes. Whatever fails,
// both sides close what they have.
func (b *bond) life(limit time.Duration) (errs []step) {
	failed := func(e *end, what string, err error) bool {
		if err != nil {
			side := "simB"
			if e == b.tx {
				side = "simA"
			}
			errs = append(errs, step{side, what, err})
		}
		return err != nil
	}
	b.mark = marked(b.tx.peer)
	send, recv, ok := b.connect(limit, failed)
	if ok {
		b.use(send, recv, limit, failed)
	}
	if send != 0 {
		failed(b.tx, "closeSend", b.tx.n.CloseSend(send))
	}
	if recv != 0 {
		failed(b.rx, "closeRecv", b.rx.n.CloseRecv(recv))
	}
	return errs
}

func (b *bond) connect(limit time.Duration, failed func(*end, string, error) bool) (send, recv host.Ptr, ok bool) {
	tx, rx := b.tx, b.rx
	at, lc, err := rx.n.Listen(rx.dev)
	if failed(rx, "listen", err) {
		return 0, 0, false
	}
	defer func() {
		failed(rx, "closeListen", rx.n.CloseListen(lc))
		rx.h.Free(at)
	}()
	handle, err := rx.h.Read(at, int64(rx.n.HandleSize()))
	if failed(rx, "handle", err) {
		return 0, 0, false
	}
	to := tx.put(handle)
	defer tx.h.Free(to)
	// accept does not fail for want of a peer, so it is polled until connect is over.
	connected := make(chan error, 1)
	go func() {
		r, err := tx.h.Call(tx.n.Setup, "net.connect", host.Args{"on", tx.n.As, "ctx", tx.n.Ctx, "dev", tx.dev, "handle", to, "poll", 1, "limit", limit})
		send = r.Ptr("comm")
		connected <- err
	}()
	var done bool
	for until := time.Now().Add(limit); recv == 0 || !done; {
		select {
		case err = <-connected:
			if done = true; failed(tx, "connect", err) {
				return send, recv, false
			}
			until = time.Now().Add(limit)
		default:
		}
		if recv == 0 {
			recv, err = rx.n.Accept(lc)
			if failed(rx, "accept", err) {
				break
			}
		}
		if recv == 0 && time.Now().After(until) {
			failed(rx, "accept", &host.CommandError{Call: "accept", Word: "deadline", Msg: "nothing came"})
			break
		}
		if recv == 0 || !done {
			time.Sleep(200 * time.Microsecond)
		}
	}
	if !done {
		failed(tx, "connect", <-connected)
	}
	return send, recv, send != 0 && recv != 0
}

// use registers both kinds of memory at each end, sends through both, flushes and deregisters.
func (b *bond) use(send, recv host.Ptr, limit time.Duration, failed func(*end, string, error) bool) {
	comms := map[*end]host.Ptr{b.tx: send, b.rx: recv}
	mhs := map[*end][2]host.Ptr{}
	whole := true
	for _, e := range []*end{b.tx, b.rx} {
		plain, err := e.n.RegMr(comms[e], e.plain, bondSize)
		bad := failed(e, "regMr", err)
		r, err := e.n.Table.Call(e.n.Setup, "regMrDmaBuf", host.Args{"comm", comms[e], "data", e.shared + bondShift, "size", bondSize - bondShift,
			"type", 2, "offset", bondShift, "fd", e.fd})
		bad = failed(e, "regMrDmaBuf", err) || bad
		mhs[e], whole = [2]host.Ptr{plain, r.Ptr("mh")}, whole && !bad
	}
	if whole && b.send(0, mhs, send, recv, limit, failed) && b.grown() && b.send(1, mhs, send, recv, limit, failed) {
		q, err := b.rx.n.Iflush(recv, []host.Recv{{Data: b.rx.plain, Size: 1000, MH: mhs[b.rx][0]}})
		if !failed(b.rx, "iflush", err) && q != 0 {
			_, err = b.rx.n.Wait(q, 1, limit)
			failed(b.rx, "test of the flush", err)
		}
	}
	for _, e := range []*end{b.tx, b.rx} {
		for _, mh := range mhs[e] {
			if mh != 0 {
				failed(e, "deregMr", e.n.DeregMr(comms[e], mh))
			}
		}
	}
}

// grown waits until further lanes have joined or are given up, unless the
// connection has none to come.
func (b *bond) grown() bool {
	for end := time.Now().Add(2 * time.Second); b.grows && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if slices.ContainsFunc(said(b.tx.peer, b.mark), func(l string) bool {
			return strings.Contains(l, "lanes now") || strings.Contains(l, "goes on with") || strings.Contains(l, " over tcp")
		}) {
			break
		}
	}
	return true
}

// without tells whether the connection goes on without some of its lanes.
func (b *bond) without() bool {
	return slices.ContainsFunc(said(b.tx.peer, b.mark), func(l string) bool { return strings.Contains(l, "goes on with") })
}

// send moves a few messages through one kind of memory; true: they arrived.
func (b *bond) send(kind int, mhs map[*end][2]host.Ptr, send, recv host.Ptr, limit time.Duration, failed func(*end, string, error) bool) bool {
	c := &conn{tx: b.tx.peer, rx: b.rx.peer, send: send, recv: recv, a: b.tx.plain, b: b.rx.plain, amh: mhs[b.tx][kind], bmh: mhs[b.rx][kind], size: bondSize}
	if kind == 1 {
		c.a, c.b, c.size = b.tx.shared+bondShift, b.rx.shared+bondShift, bondSize-bondShift
	}
	f := traffic{size: 80_000, count: 3, window: 2, limit: limit}
	r, s := c.receiving(f), c.sending(f)
	_, err := s.Wait()
	bad := failed(b.tx, "send", err)
	got, err := r.Wait()
	bad = failed(b.rx, "receive", err) || bad
	if n := got.Int("bad"); err == nil && n != 0 {
		failed(b.rx, "receive", fmt.Errorf("%d bytes are wrong", n))
	}
	return !bad
}
