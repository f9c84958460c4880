package collnet

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/rdma"
)

// testLimit bounds every wait in these tests; none of them measures time.
const testLimit = 30 * time.Second

// world is a net in memory, and what its ranks have left there.
type world struct {
	mu      sync.Mutex
	doors   map[string]*memDoor // by handle
	pipes   []*pipe
	links   int // that are open
	regions int // that are registered
	last    int
	fault   func(from, to int) error // asked for each message; nil: none fails
}

func newWorld() *world { return &world{doors: map[string]*memDoor{}} }

// node is the net of one process.
type node struct {
	*world
	rank int
}

type memDoor struct {
	of      *node
	handle  string
	waiting []*memLink
}

// pipe is one connection: what the receiver has posted, which sends fill in order.
type pipe struct {
	posted []*memRequest
	from   int
	to     int
	failed error
	closed bool
}

type memLink struct {
	w     *world
	p     *pipe
	sends bool
	peer  int
	gone  bool
}

type memRequest struct {
	of   *memLink
	b    Buffer
	tag  int32
	done bool
	size int
}

var memRequests sync.Map // by number
var lastRequest atomic.Uintptr

func keep(r *memRequest) uintptr {
	n := lastRequest.Add(1)
	memRequests.Store(n, r)
	return n
}

// waits is what the executor's look at a request says: it is not done, it is, or only Test can tell.
func waits(request uintptr) int {
	v, ok := memRequests.Load(request)
	if !ok {
		return -1
	}
	r := v.(*memRequest)
	r.of.w.mu.Lock()
	defer r.of.w.mu.Unlock()
	switch {
	case r.done:
		return 0
	case r.of.usable() != nil:
		return -1
	}
	return 1
}

func (n *node) Listen(_ int, handle []byte) (Door, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	copy(handle, fmt.Sprintf("door %d of rank %d", n.last, n.rank))
	d := &memDoor{of: n, handle: string(handle)}
	n.doors[d.handle] = d
	return d, nil
}

func (n *node) Connect(_ int, handle []byte) (Link, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.doors[string(handle)]
	if d == nil {
		return nil, report.Errorf(report.Network, "connect", "nobody listens there")
	}
	p := &pipe{from: n.rank, to: d.of.rank}
	n.pipes = append(n.pipes, p)
	d.waiting = append(d.waiting, &memLink{w: n.world, p: p, peer: n.rank})
	n.links++
	return &memLink{w: n.world, p: p, sends: true, peer: d.of.rank}, nil
}

func (d *memDoor) Accept() (Link, error) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if len(d.waiting) == 0 {
		return nil, nil
	}
	l := d.waiting[0]
	d.waiting = d.waiting[1:]
	d.of.links++
	return l, nil
}

func (d *memDoor) Close() error {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	delete(d.of.doors, d.handle)
	return nil
}

func (l *memLink) usable() error {
	if l.gone {
		return report.Errorf(report.Misuse, "link", "it was closed")
	}
	if l.p.failed == nil && l.w.fault != nil {
		l.p.failed = l.w.fault(l.p.from, l.p.to)
	}
	if l.p.failed == nil && l.p.closed {
		l.p.failed = report.Errorf(report.Peer, "link", "the peer closed the connection")
	}
	return l.p.failed
}

func (l *memLink) Send(b Buffer, tag int32) (uintptr, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if err := l.usable(); err != nil {
		return 0, err
	}
	if len(l.p.posted) == 0 || l.p.posted[0].tag != tag {
		return 0, nil
	}
	r := l.p.posted[0]
	if b.Size > r.b.Size {
		return 0, report.Errorf(report.Usage, "send", "%d bytes do not fit %d", b.Size, r.b.Size)
	}
	l.p.posted = l.p.posted[1:]
	move(r.b.Address, b.Address, b.Size)
	r.done, r.size = true, b.Size
	return keep(&memRequest{of: l, done: true, size: b.Size}), nil
}

func (l *memLink) Receive(b Buffer, tag int32) (uintptr, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if err := l.usable(); err != nil {
		return 0, err
	}
	r := &memRequest{of: l, b: b, tag: tag}
	l.p.posted = append(l.p.posted, r)
	return keep(r), nil
}

func (l *memLink) Test(request uintptr) (bool, int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	v, ok := memRequests.Load(request)
	if !ok {
		return false, 0, report.Errorf(report.Misuse, "test", "no request")
	}
	r := v.(*memRequest)
	if !r.done {
		return false, 0, l.usable()
	}
	memRequests.Delete(request)
	return true, r.size, nil
}

func (l *memLink) RegMr(uintptr, uint64, rdma.MemKind) (uintptr, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.regions++
	l.w.last++
	return uintptr(l.w.last), nil
}

func (l *memLink) RegMrDmaBuf(a uintptr, size, _ uint64, _ int, k rdma.MemKind) (uintptr, error) {
	return l.RegMr(a, size, k)
}

// DeregMr withdraws what is posted there: as with the library's links, nothing is written to memory that is not registered any more.
func (l *memLink) DeregMr(handle uintptr) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.regions--
	for _, p := range l.w.pipes {
		p.posted = slices.DeleteFunc(p.posted, func(r *memRequest) bool { return r.b.Handle == handle })
	}
	return nil
}

func (l *memLink) Cabled() bool { return false }
func (l *memLink) Peer() string { return fmt.Sprintf("host%d", l.peer) }

func (l *memLink) Fail(why error)   { l.end("the peer gave the connection up: %s", why) }
func (l *memLink) GiveUp(why error) { l.end("an abort: %s", why) }

func (l *memLink) end(format string, why error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.usable() == nil {
		l.p.failed = report.Errorf(report.Peer, "link", format, report.Reason(why)).Try("look at the peer's log")
	}
}

func (l *memLink) Close() error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.gone {
		return report.Errorf(report.Misuse, "close", "twice")
	}
	l.gone, l.p.closed = true, true
	l.p.posted = nil
	l.w.links--
	return nil
}

// testCode is distinct per cause.
func testCode(err error, _ int) int32 { return 100 + int32(report.CauseOf(err)) }

// member is one rank.
type member struct {
	*Comm
	t     testing.TB
	log   *report.Recorder
	words *words
	ctx   *Context
}

// party joins n ranks over nets.
func party(t testing.TB, nets []Net, chunk int) []*member {
	t.Helper()
	n := len(nets)
	all := make([]*member, n)
	handles := make([][]byte, n)
	doors := make([]*Listener, n)
	for r := range all {
		m := &member{t: t, log: &report.Recorder{}, words: newWords()}
		m.ctx = NewContext(Options{Net: nets[r], Requests: m.words, Table: 12, Log: m.log, Code: testCode, Timeout: testLimit, Chunk: chunk,
			Name: func(int) string { return "mem0" }})
		handles[r] = make([]byte, 128)
		var err error
		if doors[r], err = m.ctx.Listen(0, handles[r]); err != nil {
			t.Fatal(err)
		}
		all[r] = m
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, m := range all {
		wg.Go(func() {
			m.Comm, errs[r] = doors[r].Connect(handles, r)
			if err := doors[r].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return all
}

// inMemory joins n ranks of one world.
func inMemory(t testing.TB, n, chunk int) (*world, []*member) {
	w := newWorld()
	nets := make([]Net, n)
	for r := range nets {
		nets[r] = &node{w, r}
	}
	return w, party(t, nets, chunk)
}

// end closes all, and sees that nothing is left.
func (w *world) end(t testing.TB, all []*member) {
	t.Helper()
	for _, m := range all {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := m.ctx.Close(); err != nil {
			t.Error(err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.links != 0 || w.regions != 0 || len(w.doors) != 0 {
		t.Errorf("%d links, %d registrations and %d listens are left", w.links, w.regions, len(w.doors))
	}
}

// wait tests a request until it is done, or fails with a code. The hosts of even ranks do as C does in test; those of odd
// ones leave all to the goroutine.
func (m *member) wait(request uintptr) (size int, code int32) {
	for end := time.Now().Add(testLimit); time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
		if m.rank%2 == 0 && m.words.asksHelp(request) {
			m.Help()
		}
		done, size, code := m.words.test(request)
		if done || code != 0 {
			return size, code
		}
	}
	m.t.Errorf("rank %d: a request does not end", m.rank)
	return 0, -2
}
