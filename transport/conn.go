package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/transport/fastpath"
	"weft/transport/tcp"
)

// conn is a TCP connection in Go's poller whose descriptor a forked child will
// close.
type conn struct {
	*net.TCPConn
	fd     int
	closed atomic.Bool
	life   context.Context // until it is closed here
	cut    context.CancelFunc
	place  atomic.Pointer[place] // in the room of those that carry nothing yet
}

func newConn(t *net.TCPConn) (*conn, error) {
	c := &conn{TCPConn: t, fd: -1}
	raw, err := t.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { c.fd = int(fd) })
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	c.life, c.cut = context.WithCancel(context.Background())
	fastpath.TrackFD(c.fd)
	return c, nil
}

// Close closes once.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.cut()
	c.leaves()
	fastpath.UntrackFD(c.fd)
	return c.TCPConn.Close()
}

// waits gives c its place in a room, until it carries something or is closed.
func (c *conn) waits(p *place) {
	if c.place.Store(p); c.closed.Load() {
		c.leaves()
	}
}

// leaves gives the place back.
func (c *conn) leaves() {
	if p := c.place.Swap(nil); p != nil {
		p.leave()
	}
}

// handover answers a descriptor of the same connection that Go's poller does
// not know, and closes c.
func (c *conn) handover() (int, error) {
	dup, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	fastpath.TrackFD(dup)
	return dup, c.Close()
}

// flow is what the kernel says of what was written; an error once c is closed.
func (c *conn) flow() (f tcp.Flow, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return f, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { f, failed = tcp.ReadFlow(int(fd)) })
	return f, errors.Join(err, failed)
}

// apply sets the options on a connection that already stands.
func (c *conn) apply(o tcp.Options) error { return o.Apply(c.fd) }

// remote is the peer's address without a zone's noise.
func (c *conn) remote() netip.AddrPort { return plain(c.RemoteAddr()) }

func (c *conn) local() netip.AddrPort { return plain(c.LocalAddr()) }

func plain(addr net.Addr) netip.AddrPort {
	a, _ := addr.(*net.TCPAddr)
	if a == nil {
		return netip.AddrPort{}
	}
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// dial opens one connection along p.
func dial(ctx context.Context, p path, o tcp.Options, bind bool) (*conn, error) {
	var laddr netip.AddrPort
	d := net.Dialer{KeepAlive: -1}
	if p.local.IsValid() {
		laddr = netip.AddrPortFrom(p.local, 0)
	}
	d.Control = func(_, _ string, raw syscall.RawConn) error {
		var opErr error
		err := raw.Control(func(fd uintptr) {
			// Without it every source address has one pool of ports for all peers.
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
			if opErr = o.Apply(int(fd)); opErr == nil && bind && p.dev != nil {
				_, opErr = p.dev.BindToDevice(int(fd))
			}
		})
		return errors.Join(err, opErr)
	}
	t, err := d.DialTCP(ctx, "tcp", laddr, p.remote)
	if err != nil {
		return nil, err
	}
	return newConn(t)
}

// cutOnCancel makes reads and writes on c fail when ctx ends. The function it
// answers undoes that; it reports false when c was already cut.
func cutOnCancel(ctx context.Context, c *conn) func() bool {
	return context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
}

// silence is how long nothing has come from the peer's kernel, as ours remembers; not known when it does not tell.
func (c *conn) silence() (d time.Duration, known bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = raw.Control(func(fd uintptr) { // who is closed does not tell
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			d, known = time.Duration(min(info.Last_ack_recv, info.Last_data_recv))*time.Millisecond, true
		}
	})
	return d.Round(100 * time.Millisecond), known
}
