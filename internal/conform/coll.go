package conform

import (
	"bytes"
	"fmt"
	"time"

	"weft/internal/host"
)

// declines is why a plugin whose collNet has no device is not judged by what such a device does.
const declines = "its collNet offers no device"

// member is one rank of a collective group: a process of its own.
type member struct {
	*proc
	coll   *host.Coll
	rank   int
	dev    int // that it listens on
	listen host.Ptr
	handle []byte
	comm   host.Ptr
}

// member starts a process and does what NCCL does first: net's init, then collNet's.
func (e *Env) member(rank int) *member {
	m := &member{proc: e.start(fmt.Sprintf("rank %d", rank)), rank: rank}
	var err error
	m.lib, err = m.h.Load(e.o.Lib)
	e.must(err, "dlopen")
	if addr, err := m.lib.Sym(host.FamilyNet.Symbol(e.version)); err == nil && addr != 0 {
		m.net, err = m.lib.BindNet(e.version)
		e.must(err, "look up of the net table")
		m.init()
	}
	m.coll, err = m.lib.BindColl(e.version)
	e.must(err, "look up of the table")
	err = m.coll.Init()
	e.alive(err, "init")
	m.ndev = 0
	if err == nil {
		m.ndev, err = m.coll.Devices()
		e.must(err, "devices")
	}
	if m.ndev < 1 { // coll.init judges a number that was not written
		e.skipf(declines)
	}
	return m
}

// call is a slot call with raw arguments; it fails only when the process is gone.
func (m *member) call(slot string, a host.Args) (*host.Reply, error) {
	r, err := m.coll.Table.Call(m.coll.Data, slot, a)
	m.e.alive(err, slot)
	return r, err
}

// open listens.
func (m *member) open() {
	var err error
	m.handle, m.listen, err = m.coll.Listen(m.dev)
	m.e.must(err, "listen")
	if m.listen == 0 {
		m.e.failf("listen: ncclSuccess with listenComm NULL")
	}
}

// world is all ranks, connected.
type world struct {
	e     *Env
	ranks []*member
}

// listening is n ranks that have traded their handles.
func (e *Env) listening(n int) (g *world, handles [][]byte) {
	g = &world{e: e}
	for i := range n {
		g.ranks = append(g.ranks, e.member(i))
	}
	return g, g.listen()
}

func (g *world) listen() (handles [][]byte) {
	for _, m := range g.ranks {
		m.open()
		handles = append(handles, m.handle)
	}
	return handles
}

// connectPatience is for a connect that waits for ranks which may come late: plugins have limits of their own.
const connectPatience = 90 * time.Second

// connect has the ranks of `who` call connect at once and returns what each got.
func (g *world) connect(handles [][]byte, who ...*member) []error {
	var waits []*host.Pending
	for _, m := range who {
		p, err := m.coll.GoConnect(handles, m.rank, m.listen, connectPatience)
		g.e.must(err, "connect")
		waits = append(waits, p)
	}
	errs := make([]error, len(who))
	for i, p := range waits {
		r, err := p.Wait()
		g.e.alive(err, fmt.Sprintf("connect of rank %d", who[i].rank))
		if who[i].comm = r.Ptr("comm"); err == nil && who[i].comm == 0 {
			g.e.failf("connect of rank %d: ncclSuccess with collComm NULL", who[i].rank)
		}
		errs[i] = err
	}
	return errs
}

func (g *world) join(handles [][]byte) {
	for i, err := range g.connect(handles, g.ranks...) {
		g.e.must(err, fmt.Sprintf("connect of rank %d", i))
	}
}

// world connects n processes.
func (e *Env) world(n int) *world {
	g, handles := e.listening(n)
	g.join(handles)
	return g
}

// leave closes what join and listen have made.
func (g *world) leave() {
	for _, m := range g.ranks {
		g.e.must(m.coll.CloseColl(m.comm), "closeColl")
		g.e.must(m.coll.CloseListen(m.listen), "closeListen")
	}
}

// mr registers a buffer.
func (m *member) mr(b *buf) host.Ptr {
	mh, err := m.coll.RegMr(m.comm, b.addr, b.size)
	m.e.must(err, "regMr")
	return mh
}

// task is one rank's part of a collective.
type task struct {
	m    *member
	slot string
	args host.Args
	req  host.Ptr
	done bool
	err  error
}

// start calls the slot once; false: not now, or an error.
func (t *task) start() bool {
	var r *host.Reply
	r, t.err = t.m.call(t.slot, append(host.Args{"comm", t.m.comm}, t.args...))
	t.req = r.Ptr("req")
	return t.err == nil && t.req != 0
}

// test calls test once.
func (t *task) test() bool {
	var r *host.Reply
	r, t.err = t.m.call("test", host.Args{"req", t.req, "done", 0})
	t.done = t.err == nil && r.Int("done") != 0
	return t.done
}

func (t *task) what() string { return fmt.Sprintf("%s of rank %d", t.slot, t.m.rank) }

// turn does what NCCL's progress threads do once, on each rank: start what comes next, and test the oldest under way.
func turn(tasks []*task) (all bool, failed error) {
	started, tested := map[*member]bool{}, map[*member]bool{}
	all = true
	for _, t := range tasks {
		if t.done {
			continue
		}
		if t.req == 0 && !started[t.m] {
			started[t.m] = true
			t.start()
		} else if t.req != 0 && !tested[t.m] {
			tested[t.m] = true
			t.test()
		}
		if t.err != nil {
			return false, fmt.Errorf("%s: %w", t.what(), t.err)
		}
		all = all && t.done
	}
	return all, nil
}

// finish goes on until all tasks are done. A rank's stand in the order in which it starts them.
func (e *Env) finish(tasks ...*task) {
	e.until(0, "collectives", func() bool {
		all, failed := turn(tasks)
		e.must(failed, "collectives")
		return all
	})
}

// refused fails unless a call is an error that the table's callers know.
func (m *member) refused(slot string, a host.Args, what string) {
	_, err := m.call(slot, a)
	switch c := host.Code(err); {
	case c == host.Success:
		m.e.failf("%s: ncclSuccess", what)
	case !legal(m.e.version, c):
		m.e.failf("%s: %v", what, c)
	}
}

// reduction is an all-reduce of every rank, and what it is made of.
type reduction struct {
	g       *world
	v       host.Values
	count   int64
	in, out []*buf
	tasks   []*task
}

func (g *world) values(t host.DataType, op host.RedOp) host.Values {
	return host.Values{Type: t, Op: op, Ranks: len(g.ranks), Seed: 7, OfRank: host.All}
}

// reduction makes buffers with every rank's values. In place the results go over them.
func (g *world) reduction(v host.Values, count int64, inPlace bool) *reduction {
	r := &reduction{g: g, v: v, count: count}
	for _, m := range g.ranks {
		in := m.buf(max(count*v.Type.Size(), 1))
		g.e.must(m.h.FillValues(in.addr, v, m.rank, 0, count), "fill")
		out, smh := in, m.mr(in)
		rmh := smh
		if !inPlace {
			out = m.buf(in.size)
			out.fillByte(0x5c)
			rmh = m.mr(out)
		}
		r.in, r.out = append(r.in, in), append(r.out, out)
		r.tasks = append(r.tasks, &task{m: m, slot: "iallreduce", args: host.Args{"send", in.addr, "recv", out.addr, "smh", smh, "rmh", rmh,
			"count", count, "type", int(v.Type), "op", int(v.Op)}})
	}
	return r
}

// right fails unless every rank has the result.
func (r *reduction) right() {
	for i, m := range r.g.ranks {
		_, err := m.h.CheckValues(r.out[i].addr, r.v, 0, r.count)
		r.g.e.must(err, fmt.Sprintf("%s of %d %v", r.v.Op, r.count, r.v.Type))
	}
}

// read is the result of a rank.
func (r *reduction) read(rank int) []byte {
	b, err := r.g.ranks[rank].h.Read(r.out[rank].addr, r.count*r.v.Type.Size())
	r.g.e.must(err, "read")
	return b
}

// same fails unless every rank has the same bits.
func (r *reduction) same() {
	first := r.read(0)
	for i := range r.g.ranks {
		if at := differ(first, r.read(i)); at >= 0 {
			r.g.e.failf("%v of %d %v: ranks 0 and %d differ at byte %d", r.v.Op, r.count, r.v.Type, i, at)
		}
	}
}

func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// reduce carries an all-reduce out and checks it.
func (g *world) reduce(t host.DataType, op host.RedOp, count int64, inPlace bool) {
	r := g.reduction(g.values(t, op), count, inPlace)
	g.e.finish(r.tasks...)
	r.right()
}

// window is what of all ranks' parts, of `per` bytes each, an all-gather or a reduce-scatter is about.
type window struct{ per, from, to int64 }

// own is what of a rank's part lies inside: its offset in the part, and its bytes.
func (w window) own(rank int) (at, n int64) {
	mine := int64(rank) * w.per
	from, to := max(w.from, mine), min(w.to, mine+w.per)
	return max(from-mine, 0), max(to-from, 0)
}

func (w window) String() string {
	return fmt.Sprintf("bytes %d to %d of parts of %d", w.from, w.to, w.per)
}

// pieces cuts the window's bytes into n parts at elements of up to 8 bytes, each part in a buffer of its own.
func (m *member) pieces(w window, n int) (bufs []*buf, args host.Args) {
	var data, mh []host.Ptr
	var size []int64
	total := w.to - w.from
	for i, at := int64(1), int64(0); i <= int64(n); i++ {
		end := total * i / int64(n) / 8 * 8
		if i == int64(n) {
			end = total
		}
		b := m.buf(end - at)
		bufs, data, mh, size = append(bufs, b), append(data, b.addr), append(mh, m.mr(b)), append(size, b.size)
		at = end
	}
	return bufs, host.Args{"n", n, "data", data, "mh", mh, "size", size, "perRank", w.per, "offset", w.from, "bytes", total}
}

// gather carries an all-gather of a window out and checks it.
func (g *world) gather(w window, parts int) {
	e := g.e
	var tasks []*task
	var outs [][]*buf
	var whole []byte
	for _, m := range g.ranks {
		in := m.buf(w.per)
		in.fill(uint64(m.rank + 1))
		whole = append(whole, host.Pattern(uint64(m.rank+1), int(w.per))...)
		out, args := m.pieces(w, parts)
		for _, b := range out {
			b.fillByte(0x5c)
		}
		at, n := w.own(m.rank)
		if n == 0 {
			at = 0
		}
		outs = append(outs, out)
		tasks = append(tasks, &task{m: m, slot: "iallgather", args: append(args, "send", in.addr+host.Ptr(at), "smh", m.mr(in))})
	}
	e.finish(tasks...)
	for i, m := range g.ranks {
		var got []byte
		for _, b := range outs[i] {
			text, err := m.h.Read(b.addr, b.size)
			e.must(err, "read")
			got = append(got, text...)
		}
		if !bytes.Equal(got, whole[w.from:w.to]) {
			e.failf("all-gather of %v in %d parts: rank %d has other bytes from number %d on", w, parts, i, differ(got, whole[w.from:w.to]))
		}
	}
}

// scatter carries a reduce-scatter of a window out and checks it.
func (g *world) scatter(t host.DataType, w window, parts int) {
	e, v := g.e, g.values(t, host.Sum)
	var tasks []*task
	var outs []*buf
	for _, m := range g.ranks {
		in, args := m.pieces(w, parts)
		first := w.from / t.Size()
		for _, b := range in {
			e.must(m.h.FillValues(b.addr, v, m.rank, first, b.size/t.Size()), "fill")
			first += b.size / t.Size()
		}
		_, n := w.own(m.rank)
		out := m.buf(max(n, 1))
		out.fillByte(0x5c)
		outs = append(outs, out)
		tasks = append(tasks, &task{m: m, slot: "ireducescatter", args: append(args, "recv", out.addr, "rmh", m.mr(out), "type", int(t), "op", int(host.Sum))})
	}
	e.finish(tasks...)
	for i, m := range g.ranks {
		at, n := w.own(i)
		_, err := m.h.CheckValues(outs[i].addr, v, (int64(i)*w.per+at)/t.Size(), n/t.Size())
		e.must(err, fmt.Sprintf("reduce-scatter of %v in %d parts", w, parts))
	}
}

// settle lets time pass in which something must not happen.
func settle() { time.Sleep(200 * time.Millisecond) }
