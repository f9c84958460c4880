package transport

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/wire"
)

// Comm is one direction of one connection. The executor has its streams and
// requests; here is what decides: the session, registrations, failure, close.
type Comm struct {
	ctx     *Context
	dev     *device.Device
	kind    fastpath.Kind
	peer    string
	about   string // how it is connected
	cookie  uint64 // the executor's name for it
	handle  uintptr
	fp      *fastpath.Comm
	carrier carrier.Carrier

	mu      sync.Mutex
	member  *session.Member // protected by mu, as all below
	failed  error           // first cause
	unsaid  bool            // it is said when the host asks for one more request
	suspect *report.Error   // how its session ended, if the peer's process seems gone
	closed  bool
	hosts   bool // the host has it
}

// newComm makes the comm that c carries; via goes into the log's line. When it
// fails, what c was made of is the caller's still.
func newComm(x *Context, dev *device.Device, kind fastpath.Kind, peer, via string, by carrier.Carrier) (*Comm, error) {
	c := &Comm{ctx: x, dev: dev, kind: kind, peer: peer, carrier: by}
	c.cookie = by.ID()
	comms.Put(c.cookie, c)
	var err error
	if c.fp, err = by.Slab(); err == nil {
		err = by.Open(c)
	}
	if err != nil {
		comms.Take(c.cookie)
		return nil, c.notOpened(err)
	}
	c.dev.Ports.Open(x)
	c.handle = c.fp.Open()
	c.about = fmt.Sprintf("%s %s %s over %s", dev.Name, arrow(kind), peer, by.Describe(via))
	if kind == fastpath.Send {
		c.wanted()
	}
	return c, nil
}

// wanted says what the host has asked for: a connect, or one more accept. Before
// that a comm is its peer's doing, and so are the lines about it.
func (c *Comm) wanted() {
	c.mu.Lock()
	c.hosts = true
	failed := c.failed
	c.mu.Unlock()
	c.ctx.opts.Log.Info(report.Net, "%s", c.about)
	report.Say(c.ctx.opts.Log, failed)
}

// says reports whether one more line about c may be said. c.mu is held.
func (c *Comm) says() bool {
	var from netip.Addr
	if c.member != nil {
		from = c.member.Session.Conn.Remote().Addr()
	}
	return c.hosts || c.ctx.core.noise.Allows(from, c.ctx.opts.Log)
}

// arrow shows which way the data goes.
func arrow(k fastpath.Kind) string {
	if k == fastpath.Send {
		return "->"
	}
	return "<-"
}

// op is the call by which the host got the comm.
func (c *Comm) op() string {
	if c.kind == fastpath.Send {
		return "connect"
	}
	return "accept"
}

// Handle is the value that the host holds.
func (c *Comm) Handle() uintptr { return c.handle }

// Table is the version of the table that the host uses.
func (c *Comm) Table() int { return c.ctx.opts.Table }

// CommOf finds the comm behind a value that the host gave.
func CommOf(handle uintptr, kind fastpath.Kind) (*Comm, error) {
	fp, err := fastpath.Lookup(handle)
	if err != nil {
		return nil, report.Errorf(report.Misuse, "comm", "%w", err)
	}
	c, ok := comms.Get(fp.Cookie())
	if !ok || c.handle != handle {
		return nil, report.Errorf(report.Misuse, "comm", "%#x is no open comm: closed already, or not weft's", uint64(handle))
	}
	if c.kind != kind {
		return nil, report.Errorf(report.Misuse, "comm", "%#x is the other direction's comm", uint64(handle))
	}
	return c, nil
}

// attached binds c to the member that carries it. Either side may have failed
// before.
func (c *Comm) attached(m *session.Member) {
	c.mu.Lock()
	c.member = m
	mine := c.failed
	c.mu.Unlock()
	theirs, closed := m.Carry(c)
	if mine != nil {
		m.TellFailed(report.Reason(mine), false)
	}
	switch {
	case closed:
		c.left()
	case theirs != nil:
		c.lost(theirs)
	}
}

// Fail ends the comm on both sides.
func (c *Comm) Fail(err error) { c.fail(err, true) }

// lost ends the comm here: for causes that came from the peer, or when nothing
// reaches it any more. It reports whether this was the first.
func (c *Comm) lost(err error) bool { return c.fail(err, false) }

// fail ends the comm for the host: every later isend, irecv and test answers
// the code of the first cause.
func (c *Comm) fail(err error, tell bool) bool {
	c.mu.Lock()
	first := c.failed == nil && !c.closed
	if first {
		c.because(err, tell)
	}
	c.mu.Unlock()
	if first {
		c.fence()
		c.fp.Fail(c.code(err))
	}
	return first
}

// because records the first cause, says it, has the peer told and the fences know
// of it: all before a call can answer its code, for the host may then end the
// process at once, or free memory. c.mu is held.
func (c *Comm) because(err error, tell bool) {
	c.failed = err
	if c.says() {
		report.Say(c.ctx.opts.Log, err)
	}
	if tell {
		c.member.TellFailed(report.Reason(err), false)
	}
	c.fenceLater()
}

func (c *Comm) code(err error) int32 {
	return c.ctx.core.cfg.Code(err, c.ctx.opts.Table)
}

// Carrier is what moves its bytes.
func (c *Comm) Carrier() carrier.Carrier { return c.carrier }

// Log speaks to the host that has c.
func (c *Comm) Log() report.Logger { return c.ctx.opts.Log }

// Member is c to its session; nil before it is attached.
func (c *Comm) Member() *session.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.member
}

// Standing is the session of an attached comm that neither side has closed or
// given up; nil: there is none.
func (c *Comm) Standing() *session.Session {
	if m := c.Member(); m != nil && !c.Over() && m.Stands() {
		return m.Session
	}
	return nil
}

// tell sends a message about c to the peer without waiting.
func (c *Comm) tell(m func(h wire.Header) session.Frame) {
	if mb := c.Member(); mb != nil {
		mb.Session.TellLater(m(mb.Header()))
	}
}

// refusedByPeer ends a group whose send was larger than our receive. One that the
// peer cannot refuse, because it is over or was never announced, ends the comm.
func (c *Comm) refusedByPeer(s *session.Session, m *wire.Refused) {
	if c.Over() {
		return
	}
	err := report.Errorf(report.Usage, "irecv", "the peer sent %d bytes into a receive of %d (group %d, entry %d)", m.Size, m.Room, m.Seq, m.Entry).
		On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was written")
	refused, held := c.fp.RefuseGroup(m.Seq, c.code(err), func() {
		if s.Says() {
			report.Say(c.ctx.opts.Log, err)
		}
	})
	if !refused && held == nil {
		c.Fail(report.Errorf(report.Peer, c.Verb(), "the peer sent what it must not: it refuses group %d, which is not open", m.Seq).
			On(c.dev.Name).With(c.peer).Try("both hosts must run the same weft"))
	}
}

// Close ends the comm: no request survives it, bytes already handed to the
// kernel still arrive. The streams drain in the background.
func (c *Comm) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return report.Errorf(report.Misuse, "close", "the comm was closed before").On(c.dev.Name).With(c.peer)
	}
	c.closed = true
	m, failed := c.member, c.failed
	c.mu.Unlock()

	if s, is := c.carrier.(carrier.Streaming); is {
		s.Forget()
	}
	fences.Lock()
	requests := c.fp.Snapshot().Outstanding
	busy := requests > 0
	err := c.fp.Close()
	if busy {
		c.fenceLater()
	}
	fences.Unlock()
	if busy {
		c.fence()
	}
	if busy && failed == nil {
		c.ctx.opts.Log.Info(report.Net, "close on %s with %s: the host gave up %d request%s in flight, as an abort does", c.dev.Name, c.peer, requests, report.Plural(int(requests)))
	}
	c.sweep()
	comms.Take(c.cookie)
	disown(c.ctx, c.ctx.owned.comms, c)
	if m != nil {
		m.Session.TellLater(&wire.Closed{Header: m.Header()})
	}
	if err != nil { // a thread of the host is stuck inside a call: what carries it stays its own
		m.Part()
		return report.Errorf(report.Internal, "close", "%w", err).On(c.dev.Name).With(c.peer)
	}
	c.carrier.Shut(m, busy)
	return nil
}

// suspected records how the session ended, for the cause of what follows.
func (c *Comm) suspected(why *report.Error) {
	c.mu.Lock()
	c.suspect = why
	c.mu.Unlock()
}

// Over reports whether nothing more can happen to c.
func (c *Comm) Over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.failed != nil
}

// failure is what ended c first, nil while nothing has.
func (c *Comm) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// String is the comm in log lines.
func (c *Comm) String() string { return fmt.Sprintf("%s %s %s", c.dev.Name, c.op(), c.peer) }

// notOpened turns what the carrier's Open returned into the error of connect or accept.
func (c *Comm) notOpened(err error) error {
	var e *report.Error
	if errors.As(err, &e) {
		return err
	}
	if task.Exhausted(err) {
		return task.NoFiles(c.op(), err).On(c.dev.Name).With(c.peer)
	}
	return report.Errorf(report.Host, c.op(), "%w", err).On(c.dev.Name).With(c.peer).
		Try("see ulimit -n and -v, and the memory limit of the container")
}
