package rendezvous

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

const (
	backlog        = 4096
	deferAccept    = 2 * time.Second // how long the kernel keeps a silent client to itself
	HandshakeLimit = 5 * time.Second // from accept to hello, or to frame 3 where there is none before it
)

// Sockets is the process's one set of listening sockets, one per advertised
// address, shared by all *Listens: frame 1 names the listen id.
type Sockets struct {
	net       *Network
	noise     *Noise
	strangers *room
	proven    *room
	warned    sync.Once // somaxconn is said once

	mu     sync.Mutex
	ids    map[uint64]*Listen     // protected by mu
	past   [256]uint64            // ids of listens closed lately, in a ring; protected by mu
	closed int                    // listens closed; protected by mu
	socks  map[netip.Addr]*socket // protected by mu; open while ids has an entry
}

// Listen is a listen of the host, as its sockets need it.
type Listen struct {
	ID         uint64 // on the wire
	Device     string // its name
	Interfaces []*tcp.Device
	Token      wire.Token
	Fresh      func(wire.Nonce) bool    // not seen before, and the listen is open
	Proven     func(*Conn, wire.Frame1) // owns the connection from now on
}

// socket is one listening socket.
type socket struct {
	*net.TCPListener
	fd    int
	addr  netip.AddrPort
	quiet time.Time // no complaint about accept before; acceptAll's own
}

// NewSockets returns sockets that are not open yet.
func NewSockets(n *Network, noise *Noise) *Sockets {
	return &Sockets{net: n, noise: noise, strangers: roomForStrangers(), proven: roomForProven(), ids: map[uint64]*Listen{}, socks: map[netip.Addr]*socket{}}
}

// Open makes l reachable and returns the endpoints for its handle, best first,
// as many as a handle of size bytes holds.
func (r *Sockets) Open(l *Listen, size int) ([]wire.Endpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var eps []wire.Endpoint
	var failures []error
	for _, a := range advertised(r.net.interfaces, l.Interfaces...) {
		ep := wire.Endpoint{Addr: a.addr.WithZone(""), Prefix: uint8(a.bits)}
		if wire.Fits(append(eps, ep), size) == len(eps) {
			continue // another of the shorter family may fit
		}
		s, err := r.socket(a.addr)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		ep.Port = s.addr.Port()
		eps = append(eps, ep)
	}
	if len(eps) == 0 {
		r.closeIfUnused()
		return nil, r.noSocket(l, failures)
	}
	for _, err := range failures {
		r.net.log.Info(report.Net, "listen on %s: not advertising an address: %v", l.Device, err)
	}
	r.ids[l.ID] = l
	return eps, nil
}

// socket returns the one on addr, opening it if need be. Called with mu held.
func (r *Sockets) socket(addr netip.Addr) (*socket, error) {
	s := r.socks[addr]
	if s != nil && !r.net.Local.has(addr) {
		r.drop(s) // its address went away; a new socket will do when it is back
		s = nil
	}
	if s != nil {
		return s, nil
	}
	s, err := r.listen(addr)
	if err != nil {
		return nil, err
	}
	r.socks[addr] = s
	go r.acceptAll(s)
	return s, nil
}

func (r *Sockets) noSocket(l *Listen, failures []error) error {
	err := errors.Join(failures...)
	if task.Exhausted(err) {
		return task.NoFiles("listen", err).On(l.Device)
	}
	e := report.Errorf(report.Host, "listen", "no address of this process can be listened on: %w", err).On(l.Device)
	if low, high := r.net.knobs.Ports(knob.PortRange); low != 0 {
		return e.Try("WEFT_PORT_RANGE=%d-%d may be taken: each process needs one port of it per address", low, high)
	}
	return e.Try("check that the interface is up and still has its address")
}

// listen opens one socket, in WEFT_PORT_RANGE if that is set.
func (r *Sockets) listen(a netip.Addr) (*socket, error) {
	low, high := r.net.knobs.Ports(knob.PortRange)
	if low == 0 {
		return r.listenPort(a, 0)
	}
	n := int(high-low) + 1
	start := rand.IntN(n) // many processes of one host begin at different ports
	var last error
	for i := range n {
		s, err := r.listenPort(a, low+uint16((start+i)%n))
		if err == nil {
			return s, nil
		}
		if last = err; !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, last
}

func (r *Sockets) listenPort(a netip.Addr, port uint16) (*socket, error) {
	opts := tcp.DataOptions(r.net.knobs, -1) // accepted sockets inherit them
	lc := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
		var opErr error
		err := raw.Control(func(fd uintptr) {
			opErr = errors.Join(opts.Apply(int(fd)), tcp.DeferAccept(int(fd), deferAccept))
		})
		return errors.Join(err, opErr)
	}}
	lc.SetMultipathTCP(false) // the executor's socket calls know plain TCP
	for {
		l, err := lc.Listen(context.Background(), "tcp", netip.AddrPortFrom(a, port).String())
		if err == nil {
			return r.widen(l.(*net.TCPListener))
		}
		if !task.Exhausted(err) || !r.net.Files.Raise(r.net.log) {
			return nil, err
		}
	}
}

// widen sets the backlog, which package net takes from the kernel's default.
func (r *Sockets) widen(l *net.TCPListener) (*socket, error) {
	s := &socket{TCPListener: l, addr: l.Addr().(*net.TCPAddr).AddrPort()}
	raw, err := l.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			s.fd = int(fd)
			fastpath.TrackFD(s.fd)
			unix.Listen(s.fd, backlog)
		})
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	r.warned.Do(func() {
		if n := tcp.Somaxconn("/proc"); n > 0 && n < backlog {
			r.net.log.Info(report.Net, "the kernel cuts the listen backlog of %d to net.core.somaxconn=%d; a start of more ranks at once is slower", backlog, n)
		}
	})
	return s, nil
}

// Forget takes l's id away; the last one closes the sockets.
func (r *Sockets) Forget(l *Listen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, l.ID)
	r.past[r.closed%len(r.past)] = l.ID
	r.closed++
	r.closeIfUnused()
}

func (r *Sockets) closeIfUnused() {
	if len(r.ids) == 0 {
		for _, s := range r.socks {
			r.drop(s)
		}
	}
}

// drop closes s. Called with mu held.
func (r *Sockets) drop(s *socket) {
	for a, have := range r.socks {
		if have == s {
			delete(r.socks, a)
			fastpath.UntrackFD(s.fd)
			s.Close()
		}
	}
}

// CloseAll closes what is open.
func (r *Sockets) CloseAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.socks {
		r.drop(s)
	}
}

// lookup finds the listen of an id, nil for none; closed: there was one.
func (r *Sockets) lookup(id uint64) (l *Listen, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.ids[id]
	return l, l == nil && slices.Contains(r.past[:min(r.closed, len(r.past))], id)
}

const acceptPause = 50 * time.Millisecond // after a failure; the backlog keeps the clients

// acceptAll accepts on s until it is closed.
func (r *Sockets) acceptAll(s *socket) {
	for r.accept(s) {
	}
}

// accept takes one connection in; false when s was closed. A defect costs that
// one, not the socket.
func (r *Sockets) accept(s *socket) (more bool) {
	defer task.Rescue(r.net.log, "accept", func(error) {
		more = true
		time.Sleep(acceptPause)
	})
	t, err := s.AcceptTCP()
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	if err != nil {
		r.acceptFailed(s, err)
		return true
	}
	c, err := newConn(t)
	if err != nil {
		return true
	}
	r.net.table.Holds(c.FD, r.net.log)
	c.waits(r.strangers.enter(c)) // the kernel's backlog holds the others meanwhile
	go r.receive(s, c)
	return true
}

// acceptFailed deals with what accept may return while the socket stands.
func (r *Sockets) acceptFailed(s *socket, err error) {
	if task.Exhausted(err) && r.net.Files.Raise(r.net.log) {
		return
	}
	if errors.Is(err, syscall.ECONNABORTED) {
		return
	}
	if now := time.Now(); now.After(s.quiet) {
		s.quiet = now.Add(noiseEvery)
		e := report.Errorf(report.Host, "accept", "listener %s: %w", s.addr, err).
			Try("see the limits of memory and open files here; connections wait in the kernel meanwhile")
		if task.Exhausted(err) {
			e = task.NoFiles("accept", err)
		}
		report.Say(r.net.log, e)
	}
	time.Sleep(acceptPause)
}

// advertise is one address in a device's order.
type advertise struct {
	addr netip.Addr
	bits int
}

// advertised orders the addresses, those of the device's interfaces first, of
// the others one per further subnet. A link-local address helps only a neighbour
// and only when it has no other.
func advertised(all []*tcp.Device, own ...*tcp.Device) []advertise {
	var out, local []advertise
	subnets := map[netip.Prefix]*tcp.Device{}
	add := func(d *tcp.Device, owned bool) {
		for i, p := range d.Addrs {
			a := advertise{addr: d.Addr(i), bits: p.Bits()}
			first, known := subnets[p.Masked()]
			switch {
			case p.Addr().Is6() && p.Addr().IsLinkLocalUnicast():
				if owned {
					local = append(local, a)
				}
			case !known || owned && first != d && slices.Contains(own, first):
				subnets[p.Masked()] = d
				out = append(out, a)
			}
		}
	}
	for _, d := range own {
		add(d, true)
	}
	for _, d := range all {
		if !slices.Contains(own, d) {
			add(d, false)
		}
	}
	if len(out) == 0 {
		return local
	}
	return out
}

// Unused counts a connection that carries nothing any more among those that may
// be closed for others. It does not wait.
func (r *Sockets) Unused(c *Conn) {
	c.Leaves() // counted once, should it be among them
	c.waits(r.proven.push(c))
}
