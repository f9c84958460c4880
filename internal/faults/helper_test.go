package faults

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
)

const patience = 60 * time.Second

// The tables that tests bind where no other is meant.
var first, newest = host.FamilyNet.Versions()

// TestMain lets more tests run at once than there are CPUs: most of them wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("6")
	}
	os.Exit(m.Run())
}

// peer is one process with the library in it and a table bound and initialised.
type peer struct {
	t   testing.TB
	h   *host.Host
	lib *host.Lib
	n   *host.Net
	dev int // that listens and connects are on
}

func must(t testing.TB, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// bare is a process without the library.
func bare(t testing.TB, name string, env ...string) *peer {
	t.Helper()
	bin, err := build.Host()
	must(t, err, "host program")
	h, err := host.Start(host.Options{Bin: bin, Name: name, Env: env, Deadline: patience})
	must(t, err, "start")
	t.Cleanup(func() {
		if h.Err() == nil {
			h.Kill()
		}
	})
	return &peer{t: t, h: h}
}

func (p *peer) load(version int) {
	p.t.Helper()
	path, err := build.Library()
	must(p.t, err, "library")
	p.lib, err = p.h.Load(path)
	must(p.t, err, "dlopen")
	p.n, err = p.lib.BindNet(version)
	must(p.t, err, "table")
}

// start is a process with the table initialised.
func start(t testing.TB, name string, version int, env ...string) *peer {
	t.Helper()
	p := bare(t, name, env...)
	p.load(version)
	must(t, p.n.Init(), "init")
	return p
}

// conn is one connection with a registered buffer at each end.
type conn struct {
	tx, rx     *peer
	send, recv host.Ptr
	a, b       host.Ptr
	amh, bmh   host.Ptr
	size       int64
	name       string // of the threads that move its data, where a process has several such comms
}

// listen opens a rendezvous and returns the handle's bytes.
func (p *peer) listen() (handle []byte, comm host.Ptr) {
	p.t.Helper()
	at, comm, err := p.n.Listen(p.dev)
	must(p.t, err, "listen")
	b, err := p.h.Read(at, int64(p.n.HandleSize()))
	must(p.t, err, "handle")
	return b, comm
}

func (p *peer) put(b []byte) host.Ptr {
	p.t.Helper()
	at, err := p.h.Alloc(int64(len(b)))
	must(p.t, err, "alloc")
	must(p.t, p.h.Write(at, b), "write")
	return at
}

// join connects tx to rx, with buffers of size bytes.
func join(tx, rx *peer, size int64) *conn {
	tx.t.Helper()
	handle, lc := rx.listen()
	c := &conn{tx: tx, rx: rx, size: size}
	at := tx.put(handle)
	w := tx.h.Go(tx.n.Setup, "net.connect", host.Args{"on", tx.n.As, "ctx", tx.n.Ctx, "dev", tx.dev, "handle", at, "poll", 1, "limit", patience})
	var err error
	c.recv, err = rx.n.AcceptPoll(lc, patience)
	must(tx.t, err, "accept")
	r, err := w.Wait()
	must(tx.t, err, "connect")
	c.send = r.Ptr("comm")
	must(tx.t, rx.n.CloseListen(lc), "closeListen")
	c.a, c.amh = tx.mem(c.send, size)
	c.b, c.bmh = rx.mem(c.recv, size)
	return c
}

func (p *peer) mem(comm host.Ptr, size int64) (at, mh host.Ptr) {
	p.t.Helper()
	at, err := p.h.Alloc(size)
	must(p.t, err, "alloc")
	mh, err = p.n.RegMr(comm, at, size)
	must(p.t, err, "regMr")
	return at, mh
}

// traffic is a stream of checked messages in one direction.
type traffic struct {
	size    int64
	count   int
	window  int
	delayRx time.Duration
	limit   time.Duration
}

func (c *conn) sending(f traffic) *host.Pending {
	return c.loop(c.tx, "send", c.send, c.a, c.amh, f, 0)
}

func (c *conn) receiving(f traffic) *host.Pending {
	return c.loop(c.rx, "recv", c.recv, c.b, c.bmh, f, f.delayRx)
}

func (c *conn) loop(p *peer, role string, comm, buf, mh host.Ptr, f traffic, delay time.Duration) *host.Pending {
	if f.limit == 0 {
		f.limit = patience
	}
	// Every direction has a thread of its own: a process may send and receive at once.
	return p.h.GoIn(f.limit+delay+10*time.Second, role+c.name, "bw", host.Args{"on", p.n.As, "role", role, "comm", comm, "mh", mh, "buf", buf, "size", f.size,
		"span", c.size, "count", f.count, "window", f.window, "check", 1, "seed", 7, "limit", f.limit, "delay", delay})
}

// arrived requires all messages of a receiving loop, every byte of them.
func arrived(t testing.TB, w *host.Pending) {
	t.Helper()
	r, err := w.Wait()
	must(t, err, "receiver")
	if n := r.Int("bad"); n != 0 {
		t.Errorf("%d bytes are wrong", n)
	}
}

// move sends messages one way and checks them.
func (c *conn) move(f traffic) {
	c.tx.t.Helper()
	r, s := c.receiving(f), c.sending(f)
	_, err := s.Wait()
	must(c.tx.t, err, "sender")
	arrived(c.tx.t, r)
}

func setting(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return def
}

func duration(name string, def time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil && d > 0 {
		return d
	}
	return def
}
