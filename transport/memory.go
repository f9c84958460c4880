package transport

import (
	"errors"

	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// memory is one registration. It belongs to a comm, and lives no longer.
type memory struct {
	registration
	comm   *Comm
	cookie uint64
	handle uintptr
	addr   uintptr
	size   uint64
}

// RegMr registers memory by its address. The executor checks every isend and
// irecv against it.
func (c *Comm) RegMr(addr uintptr, size uint64, kind rdma.MemKind) (uintptr, error) {
	r, err := c.carrier.memory(addr, size, kind)
	if err != nil {
		return 0, err
	}
	return c.register(&memory{registration: r, addr: addr, size: size}, kind)
}

// RegMrDmaBuf registers memory behind a DMA-BUF. The caller may close its
// descriptor at once.
func (c *Comm) RegMrDmaBuf(addr uintptr, size, offset uint64, fd int, kind rdma.MemKind) (uintptr, error) {
	r, err := c.carrier.buffer(addr, size, offset, fd, kind)
	if err != nil {
		return 0, err
	}
	return c.register(&memory{registration: r, addr: addr, size: size}, kind)
}

// giveBack ends the carrier's part of a registration.
func (r *registration) giveBack() {
	if r.release != nil {
		r.release()
	}
}

// register makes m known to the executor; when it fails m's memory is given back.
func (c *Comm) register(m *memory, kind rdma.MemKind) (uintptr, error) {
	m.comm = c
	mrs.add(func(id uint64) *memory { m.cookie = id; return m })
	h, err := fastpath.RegisterMR(fastpath.MR{Device: c.carrier.device(), Addr: m.addr, Base: m.base, CPU: m.base, Length: m.size,
		Kind: uint32(kind), Cookie: m.cookie, Keys: m.keys})
	if err != nil {
		mrs.take(m.cookie)
		m.giveBack()
		if errors.Is(err, fastpath.ErrWraps) {
			return 0, rdma.Errorf(rdma.Misuse, "regMr", "%w", err).On(c.dev.Name)
		}
		return 0, rdma.Errorf(rdma.Host, "regMr", "%d bytes at %#x: %w", m.size, m.addr, err).On(c.dev.Name).
			Try("see ulimit -v and the memory limit of the container")
	}
	m.handle = h
	c.mu.Lock()
	closed := c.closed
	c.mrs[m] = struct{}{}
	c.mu.Unlock()
	if closed {
		c.DeregMr(h)
		return 0, rdma.Errorf(rdma.Misuse, "regMr", "the comm was closed").On(c.dev.Name)
	}
	return h, nil
}

// DeregMr ends a registration: afterwards nothing of weft reads or writes that
// memory. Comms with requests under way in it fail.
func (c *Comm) DeregMr(h uintptr) error {
	cookie, err := fastpath.LookupMR(h)
	if err != nil {
		return rdma.Errorf(rdma.Misuse, "deregMr", "%w", err).On(c.dev.Name)
	}
	m, ok := mrs.take(cookie)
	if !ok {
		return rdma.Errorf(rdma.Misuse, "deregMr", "%#x was deregistered before", uint64(h)).On(c.dev.Name)
	}
	owner := m.comm
	owner.mu.Lock()
	delete(owner.mrs, m)
	owner.mu.Unlock()
	cut := rdma.Errorf(rdma.Misuse, "deregMr", "%d bytes at %#x were deregistered while a request used them", m.size, m.addr).
		On(c.dev.Name).With(c.peer)
	waitForFences()
	users, err := fastpath.DeregisterMR(h, c.code(cut))
	for _, fp := range users {
		if u, ok := comms.get(fp.Cookie()); ok {
			u.note(cut)
			u.carrier.fence()
			u.tell(func(h wire.Header) frame { return &wire.Failed{Header: h, Reason: cut.Err.Error()} })
		}
	}
	if err != nil { // a thread may still be inside the memory: leave the mapping
		return rdma.Errorf(rdma.Internal, "deregMr", "%w", err).On(c.dev.Name)
	}
	m.giveBack()
	return nil
}

// note records why the executor ended c; the host hears the code from it.
func (c *Comm) note(err error) {
	c.mu.Lock()
	if c.failed == nil {
		c.failed = err
	}
	c.mu.Unlock()
	c.ctx.opts.Log.Info(rdma.Net, "%v", err)
}
