package transport

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// Comm is one direction of one connection. The executor has its streams and
// requests; here is what decides: the session, registrations, failure, close.
type Comm struct {
	ctx    *Context
	dev    *tcp.Device
	kind   fastpath.Kind
	peer   string
	cookie uint64 // the executor's name for it
	handle uintptr
	fp     *fastpath.Comm

	mu      sync.Mutex
	fds     []int // of the streams, until close; protected by mu, as all below
	member  *member
	mrs     map[*memory]struct{}
	failed  error       // first cause
	suspect *rdma.Error // how its session ended, if the peer's process seems gone
	closed  bool
}

// newComm gives the connections of a finished handshake to the executor; via
// goes into the log's line. When it fails the connections are the caller's
// still, to be closed.
func newComm(x *Context, dev *tcp.Device, kind fastpath.Kind, peer, via string, conns []*conn) (*Comm, error) {
	c := &Comm{ctx: x, dev: dev, kind: kind, peer: peer, mrs: map[*memory]struct{}{}}
	comms.add(func(id uint64) *Comm { c.cookie = id; return c })
	fail := func(what string, err error) (*Comm, error) {
		comms.take(c.cookie)
		if c.fp != nil {
			c.fp.Close()
			c.fp.Free()
		}
		for _, fd := range c.fds {
			closeFD(fd)
		}
		if exhausted(err) {
			return nil, noFiles(c.op(), err).On(dev.Name).With(peer)
		}
		return nil, rdma.Errorf(rdma.Host, c.op(), "%s: %w", what, err).On(dev.Name).With(peer).
			Try("see ulimit -n and -v, and the memory limit of the container")
	}
	var err error
	c.fp, err = fastpath.New(fastpath.Options{Kind: kind, Device: uint32(dev.Index), Cookie: c.cookie, Upcalls: upcalls()})
	if err != nil {
		return fail("no memory for a connection", err)
	}
	facts := tcp.ReadFacts(conns[0].fd)
	for _, k := range conns {
		fd, err := x.handover(k)
		if err != nil {
			return fail("taking over a socket", err)
		}
		c.fds = append(c.fds, fd)
	}
	if err := tcp.AttachStreams(c.fp, 0, c.fds); err != nil {
		return fail("attaching streams", err)
	}
	c.handle = c.fp.Open()
	x.opts.Log.Info(rdma.Net, "%s %s %s over tcp%s, %d stream%s, MTU %d, MSS %d, TOS %d", dev.Name, arrow(kind), peer, via,
		len(c.fds), plural(len(c.fds)), dev.MTU, facts.MSS, facts.TOS)
	return c, nil
}

// arrow shows which way the data goes.
func arrow(k fastpath.Kind) string {
	if k == fastpath.Send {
		return "->"
	}
	return "<-"
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// handover moves a connection out of Go's poller, making room for its second
// descriptor if need be.
func (x *Context) handover(k *conn) (int, error) {
	for {
		fd, err := k.handover()
		if err == nil || !exhausted(err) || !x.core.files.raise(x.opts.Log) {
			return fd, err
		}
	}
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

// Context is the one that the comm was made under.
func (c *Comm) Context() *Context { return c.ctx }

// Peer names the other process for messages.
func (c *Comm) Peer() string { return c.peer }

// CommOf finds the comm behind a value that the host gave.
func CommOf(handle uintptr, kind fastpath.Kind) (*Comm, error) {
	fp, err := fastpath.Lookup(handle)
	if err != nil {
		return nil, rdma.Errorf(rdma.Misuse, "comm", "%w", err)
	}
	c, ok := comms.get(fp.Cookie())
	if !ok || c.handle != handle {
		return nil, rdma.Errorf(rdma.Misuse, "comm", "%#x is no open comm: closed already, or not weft's", uint64(handle))
	}
	if c.kind != kind {
		return nil, rdma.Errorf(rdma.Misuse, "comm", "%#x is the other direction's comm", uint64(handle))
	}
	return c, nil
}

// attached binds c to the member that carries it.
func (c *Comm) attached(m *member) {
	c.mu.Lock()
	c.member = m
	c.mu.Unlock()
	s := m.session
	s.mu.Lock()
	m.comm = c
	failed, closed := m.failed, m.closed
	s.mu.Unlock()
	if failed != nil && !closed {
		c.fail(failed)
	}
}

// fail ends the comm for the host: every later isend, irecv and test answers
// the code of the first cause.
func (c *Comm) fail(err error) {
	c.mu.Lock()
	first := c.failed == nil && !c.closed
	if first {
		c.failed = err
	}
	c.mu.Unlock()
	if !first {
		return
	}
	c.fp.Fail(c.code(err))
	rdma.Say(c.ctx.opts.Log, err)
}

func (c *Comm) code(err error) int32 {
	return c.ctx.core.cfg.Code(err, c.ctx.opts.ABI)
}

// tell sends a message about c to the peer without waiting.
func (c *Comm) tell(m func(h wire.Header) frame) {
	c.mu.Lock()
	mb := c.member
	c.mu.Unlock()
	if mb != nil {
		mb.session.tellLater(m(mb.header()))
	}
}

// refusedByPeer ends a group whose send was larger than our receive.
func (c *Comm) refusedByPeer(m *wire.Refused) {
	err := rdma.Errorf(rdma.Usage, "irecv", "the peer sent %d bytes into a receive of %d (group %d, entry %d)", m.Size, m.Room, m.Seq, m.Entry).
		On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was written")
	rdma.Say(c.ctx.opts.Log, err)
	c.fp.RefuseGroup(m.Seq, c.code(err))
}

// Close ends the comm: no request survives it, bytes already handed to the
// kernel still arrive. The streams drain in the background.
func (c *Comm) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return rdma.Errorf(rdma.Misuse, "close", "the comm was closed before").On(c.dev.Name).With(c.peer)
	}
	c.closed = true
	m := c.member
	var left []*memory
	for r := range c.mrs {
		left = append(left, r)
	}
	c.fds = nil
	c.mu.Unlock()

	err := c.fp.Close()
	for _, r := range left {
		c.DeregMr(r.handle)
	}
	comms.take(c.cookie)
	disown(c.ctx, c.ctx.owned.comms, c)
	if m != nil {
		m.session.tellLater(&wire.Closed{Header: m.header()})
		m.session.leave(m)
		if c.kind == fastpath.Send {
			m.session.release()
		}
	}
	if err != nil { // a thread of the host is stuck inside a call: its streams stay its own
		return rdma.Errorf(rdma.Internal, "close", "%w", err).On(c.dev.Name).With(c.peer)
	}
	c.ctx.core.reaper.add(tcp.DetachStreams(c.fp), c.fp)
	return nil
}

// streamState is what the kernel says of a comm's streams together.
type streamState struct {
	ended  bool   // every stream has had the peer's end
	unread int    // bytes that wait for our host
	bytes  uint64 // received so far
}

// streams asks the kernel; a closed comm counts as ended.
func (c *Comm) streams() streamState {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := streamState{ended: true}
	for _, fd := range c.fds {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			continue
		}
		const established, finWait1, finWait2 = 1, 4, 5
		switch info.State {
		case established, finWait1, finWait2:
			st.ended = false
		}
		st.bytes += info.Bytes_received
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			st.unread += n
		}
	}
	return st
}

// suspected records how the session ended, for the cause of what follows.
func (c *Comm) suspected(why *rdma.Error) {
	c.mu.Lock()
	c.suspect = why
	c.mu.Unlock()
}

// over reports whether nothing more can happen to c.
func (c *Comm) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.failed != nil
}

// String is the comm in log lines.
func (c *Comm) String() string { return fmt.Sprintf("%s %s %s", c.dev.Name, c.op(), c.peer) }
