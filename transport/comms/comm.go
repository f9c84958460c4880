package comms

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/memory"
	"weft/transport/meter"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/wire"
)

// Host is what comms have of the context that asked for them.
type Host struct {
	Log    report.Logger
	CommID uint64                           // NCCL's id of the communicator; 0: it has not told
	Table  int                              // the version of the table that the host uses
	Code   func(err error, table int) int32 // the only place where an error becomes a result code; table 0: its version is not known
	Noise  *rendezvous.Noise                // of the process
	Owner  memory.Owner                     // of what they register
	Gone   func(*Comm)                      // the host has closed one
}

// Comm is one direction of one connection. The executor has its streams and
// requests; here is what decides: the session, registrations, failure, close.
type Comm struct {
	host    *Host
	dev     *device.Device
	kind    fastpath.Kind
	peer    string
	about   string // how it is connected; empty where nobody reads it
	cookie  uint64 // the executor's name for it
	handle  uintptr
	fp      *fastpath.Comm
	carrier carrier.Carrier
	meter   *meter.Link // nil: its messages are not counted
	fenced  fenced

	mu      sync.Mutex
	member  *session.Member // protected by mu, as all below
	failed  error           // first cause
	unsaid  bool            // it is said when the host asks for one more request
	suspect *report.Error   // how its session ended, if the peer's process seems gone
	closed  bool
	hosts   bool // the host has it
}

// A process has one table of comms, however many cores it has: handles travel
// through the host, which does not say whose they are.
var comms = task.NewIDs[*Comm](0)

// Reserve draws the executor's name for a comm that is to be.
func Reserve() uint64 { return comms.Reserve() }

// New makes the comm that by carries; via goes into the log's line. When it
// fails, what by was made of still belongs to the caller.
func New(h *Host, dev *device.Device, kind fastpath.Kind, peer, via string, by carrier.Carrier) (*Comm, error) {
	c := &Comm{host: h, dev: dev, kind: kind, peer: peer, carrier: by}
	c.fenced.log = h.Log
	c.fenced.by, _ = by.(carrier.OneSided)
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
	c.dev.Ports.Open(h.Owner)
	c.handle = c.fp.Open()
	if report.Informs(h.Log) {
		c.about = fmt.Sprintf("%s %s %s over %s", dev.Name, arrow(kind), peer, by.Describe(via))
	}
	if kind == fastpath.Send {
		c.Wanted()
	}
	return c, nil
}

// Wanted logs a comm that the host has asked for, by a connect or one more accept.
// Until then it is its peer's doing, and so are the lines about it.
func (c *Comm) Wanted() {
	c.mu.Lock()
	c.hosts = true
	failed := c.failed
	c.mu.Unlock()
	if c.about != "" {
		c.host.Log.Info(report.Net, "%s", c.about)
	}
	report.Say(c.host.Log, failed)
}

// says reports whether one more line about c may be logged. c.mu is held.
func (c *Comm) says() bool {
	var from netip.Addr
	if c.member != nil {
		from = c.member.Session.Conn.Remote().Addr()
	}
	return c.hosts || c.host.Noise.Allows(from, c.host.Log)
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

// Verb is the call that moves c's data.
func (c *Comm) Verb() string {
	if c.kind == fastpath.Send {
		return "isend"
	}
	return "irecv"
}

// Handle is the value that the host holds.
func (c *Comm) Handle() uintptr { return c.handle }

// Table is the version of the table that the host uses.
func (c *Comm) Table() int { return c.host.Table }

// Of finds the comm behind a value that the host gave.
func Of(handle uintptr, kind fastpath.Kind) (*Comm, error) {
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

// Attached binds c to the member that carries it. Either side may have failed
// before.
func (c *Comm) Attached(m *session.Member) {
	c.mu.Lock()
	c.member = m
	mine := c.failed
	c.mu.Unlock()
	c.recorded(m)
	c.counted(m)
	theirs, closed := m.Carry(c)
	if mine != nil {
		m.TellFailed(report.Reason(mine), false)
	}
	switch {
	case closed:
		c.PeerClosed()
	case theirs != nil:
		c.lost(theirs)
	}
}

// hears is what the peer is told of the end of a comm.
type hears int

const (
	nothing hears = iota
	failure
	abort // that this was no failure
)

// Fail ends the comm on both sides.
func (c *Comm) Fail(err error) { c.fail(err, failure) }

// lost ends the comm here: for causes that came from the peer, or when nothing
// reaches it any more. It reports whether this was the first.
func (c *Comm) lost(err error) bool { return c.fail(err, nothing) }

// fail ends the comm for the host: every later isend, irecv and test returns
// the code of the first cause.
func (c *Comm) fail(err error, peer hears) bool {
	c.mu.Lock()
	first := c.failed == nil && !c.closed
	if first {
		c.because(err, peer)
	}
	c.mu.Unlock()
	if first {
		c.fenced.fence()
		c.fp.Fail(c.code(err))
	}
	return first
}

// because records and logs the first cause, tells the peer, and queues the fence,
// all before any call can return its code: the host may then end the process at
// once, or free memory. c.mu is held.
func (c *Comm) because(err error, peer hears) {
	c.failed = err
	if c.says() {
		report.Say(c.host.Log, err)
	}
	if peer != nothing {
		c.member.TellFailed(report.Reason(err), peer == abort)
	}
	c.fenced.later()
}

func (c *Comm) code(err error) int32 { return c.host.Code(err, c.host.Table) }

// Carrier is what moves its bytes.
func (c *Comm) Carrier() carrier.Carrier { return c.carrier }

// Log speaks to the host that has c.
func (c *Comm) Log() report.Logger { return c.host.Log }

// Member is c to its session; nil before it is attached.
func (c *Comm) Member() *session.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.member
}

// Hear has the host's profiler asked again whether it wants the comm's events.
func (c *Comm) Hear() { c.fp.Hear() }

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

// Over reports whether nothing more can happen to c.
func (c *Comm) Over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.failed != nil
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
