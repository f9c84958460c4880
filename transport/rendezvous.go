package transport

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
	handshakeLimit = 5 * time.Second // from accept to a valid frame 3
)

// rendezvous is the process's one set of listening sockets, one per advertised
// address, shared by all listens: frame 1 names the listen id.
type rendezvous struct {
	core      *Core
	strangers *room
	proven    *room
	warned    sync.Once // somaxconn is said once

	mu    sync.Mutex
	ids   map[uint64]*Listener   // protected by mu
	past  [256]uint64            // ids of listens closed of late, in a ring; protected by mu
	ends  int                    // listens closed; protected by mu
	socks map[netip.Addr]*socket // protected by mu; open while ids has an entry
}

// socket is one listening socket.
type socket struct {
	*net.TCPListener
	fd    int
	addr  netip.AddrPort
	quiet time.Time // no complaint about accept before; acceptAll's own
}

func newRendezvous(c *Core) *rendezvous {
	return &rendezvous{core: c, strangers: roomForStrangers(), proven: roomForProven(), ids: map[uint64]*Listener{}, socks: map[netip.Addr]*socket{}}
}

// open makes l reachable and answers the endpoints for its handle, best first,
// as many as a handle of size bytes holds.
func (r *rendezvous) open(l *Listener, size int) ([]wire.Endpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var eps []wire.Endpoint
	var failures []error
	for _, a := range advertised(r.core.cfg.Interfaces, l.dev.interfaces()...) {
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
		r.core.cfg.Log.Info(report.Net, "listen on %s: not advertising an address: %v", l.dev.Name, err)
	}
	r.ids[l.id] = l
	return eps, nil
}

// socket answers the one on addr, opening it if need be. Called with mu held.
func (r *rendezvous) socket(addr netip.Addr) (*socket, error) {
	s := r.socks[addr]
	if s != nil && !r.core.local.has(addr) {
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

func (r *rendezvous) noSocket(l *Listener, failures []error) error {
	err := errors.Join(failures...)
	if task.Exhausted(err) {
		return task.NoFiles("listen", err).On(l.dev.Name)
	}
	e := report.Errorf(report.Host, "listen", "no address of this process can be listened on: %w", err).On(l.dev.Name)
	if low, high := r.core.cfg.Knobs.Ports(knob.PortRange); low != 0 {
		return e.Try("WEFT_PORT_RANGE=%d-%d may be taken: each process needs one port of it per address", low, high)
	}
	return e.Try("check that the interface is up and still has its address")
}

// listen opens one socket, in WEFT_PORT_RANGE if that is set.
func (r *rendezvous) listen(a netip.Addr) (*socket, error) {
	low, high := r.core.cfg.Knobs.Ports(knob.PortRange)
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

func (r *rendezvous) listenPort(a netip.Addr, port uint16) (*socket, error) {
	opts := tcp.DataOptions(r.core.cfg.Knobs, -1) // accepted sockets inherit them
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
		if !task.Exhausted(err) || !r.core.files.Raise(r.core.cfg.Log) {
			return nil, err
		}
	}
}

// widen sets the backlog, which package net takes from the kernel's default.
func (r *rendezvous) widen(l *net.TCPListener) (*socket, error) {
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
			r.core.cfg.Log.Info(report.Net, "the kernel cuts the listen backlog of %d to net.core.somaxconn=%d; a start of more ranks at once is slower", backlog, n)
		}
	})
	return s, nil
}

// forget takes l's id away; the last one closes the sockets.
func (r *rendezvous) forget(l *Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, l.id)
	r.past[r.ends%len(r.past)] = l.id
	r.ends++
	r.closeIfUnused()
}

func (r *rendezvous) closeIfUnused() {
	if len(r.ids) == 0 {
		for _, s := range r.socks {
			r.drop(s)
		}
	}
}

// drop closes s. Called with mu held.
func (r *rendezvous) drop(s *socket) {
	for a, have := range r.socks {
		if have == s {
			delete(r.socks, a)
			fastpath.UntrackFD(s.fd)
			s.Close()
		}
	}
}

func (r *rendezvous) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.socks {
		r.drop(s)
	}
}

// lookup finds the listen of an id, nil for none; closed: there was one.
func (r *rendezvous) lookup(id uint64) (l *Listener, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.ids[id]
	return l, l == nil && slices.Contains(r.past[:min(r.ends, len(r.past))], id)
}

const acceptPause = 50 * time.Millisecond // after a failure; the backlog keeps the clients

// acceptAll accepts on s until it is closed.
func (r *rendezvous) acceptAll(s *socket) {
	for r.accept(s) {
	}
}

// accept takes one connection in; false when s was closed. A defect costs that
// one, not the socket.
func (r *rendezvous) accept(s *socket) (more bool) {
	defer task.Rescue(r.core.cfg.Log, "accept", func(error) {
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
	c.waits(r.strangers.enter(c)) // the kernel's backlog holds the others meanwhile
	go r.receive(s, c)
	return true
}

// acceptFailed deals with what accept may answer while the socket stands.
func (r *rendezvous) acceptFailed(s *socket, err error) {
	if task.Exhausted(err) && r.core.files.Raise(r.core.cfg.Log) {
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
		report.Say(r.core.cfg.Log, e)
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
