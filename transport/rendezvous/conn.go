package rendezvous

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

// Conn is a TCP connection in Go's poller whose descriptor a forked child will
// close.
type Conn struct {
	*net.TCPConn
	FD     int
	closed atomic.Bool
	Life   context.Context // until it is closed here
	cut    context.CancelFunc
	place  atomic.Pointer[place] // in the room of those that carry nothing yet
}

// newConn takes a connection in; it closes t when it fails.
func newConn(t *net.TCPConn) (*Conn, error) {
	c := &Conn{TCPConn: t, FD: -1}
	raw, err := t.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { c.FD = int(fd) })
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	c.Life, c.cut = context.WithCancel(context.Background())
	fastpath.TrackFD(c.FD)
	return c, nil
}

// Close closes once.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.cut()
	c.Leaves()
	fastpath.UntrackFD(c.FD)
	return c.TCPConn.Close()
}

// waits gives c its place in a room, until it carries something or is closed.
func (c *Conn) waits(p *place) {
	if c.place.Store(p); c.closed.Load() {
		c.Leaves()
	}
}

// Leaves gives the place back.
func (c *Conn) Leaves() {
	if p := c.place.Swap(nil); p != nil {
		p.leave()
	}
}

// Handover returns a descriptor of the same connection that Go's poller does
// not know, and closes c.
func (c *Conn) Handover() (int, error) {
	dup, err := unix.FcntlInt(uintptr(c.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	fastpath.TrackFD(dup)
	return dup, c.Close()
}

// flow is what the kernel says of what was written; an error once c is closed.
func (c *Conn) flow() (f tcp.Flow, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return f, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { f, failed = tcp.ReadFlow(int(fd)) })
	return f, errors.Join(err, failed)
}

// Apply sets the options on a connection that already stands.
func (c *Conn) Apply(o tcp.Options) error { return o.Apply(c.FD) }

// Remote is the peer's address without a zone's noise.
func (c *Conn) Remote() netip.AddrPort { return plain(c.RemoteAddr()) }

// Local is the own address likewise.
func (c *Conn) Local() netip.AddrPort { return plain(c.LocalAddr()) }

func plain(addr net.Addr) netip.AddrPort {
	a, _ := addr.(*net.TCPAddr)
	if a == nil {
		return netip.AddrPort{}
	}
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// dial opens one connection along p.
func dial(ctx context.Context, p Path, o tcp.Options, bind bool) (*Conn, error) {
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
	t, err := d.DialTCP(ctx, "tcp", laddr, p.Remote)
	if err != nil {
		return nil, err
	}
	return newConn(t)
}

// CutOnCancel makes reads and writes on c fail when ctx ends. The function it
// returns undoes that; it reports false when c was already cut.
func CutOnCancel(ctx context.Context, c *Conn) func() bool {
	return context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
}

// Silence is how long nothing has come from the peer's kernel, as ours remembers; not known when it does not tell.
func (c *Conn) Silence() (d time.Duration, known bool) {
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
