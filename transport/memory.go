package transport

import (
	"errors"

	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// memory is one registration. It belongs to a comm, and lives no longer.
type memory struct {
	comm    *Comm
	cookie  uint64
	handle  uintptr
	addr    uintptr
	size    uint64
	mapping *mapping // of a DMA-BUF, else nil
}

// RegMr registers host memory. The executor checks every isend and irecv
// against it; nothing is pinned, since sockets copy.
func (c *Comm) RegMr(addr uintptr, size uint64, kind rdma.MemKind) (uintptr, error) {
	if kind != rdma.MemHost {
		return 0, rdma.Errorf(rdma.Usage, "regMr", "%s memory cannot travel over TCP", kind).On(c.dev.Name).
			Try("NCCL stages it through host memory when the device reports host pointers only")
	}
	return c.register(&memory{addr: addr, size: size}, addr, kind)
}

// register makes m known to the executor, which reaches its bytes at base.
func (c *Comm) register(m *memory, base uintptr, kind rdma.MemKind) (uintptr, error) {
	m.comm = c
	mrs.add(func(id uint64) *memory { m.cookie = id; return m })
	h, err := fastpath.RegisterMR(uint32(c.dev.Index), m.addr, base, m.size, uint32(kind), m.cookie)
	if err != nil {
		mrs.take(m.cookie)
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
	users, err := fastpath.DeregisterMR(h, c.code(cut))
	for _, fp := range users {
		if u, ok := comms.get(fp.Cookie()); ok {
			u.note(cut)
		}
	}
	if err != nil { // a thread may still be inside the memory: leave the mapping
		return rdma.Errorf(rdma.Internal, "deregMr", "%w", err).On(c.dev.Name)
	}
	if m.mapping != nil {
		m.mapping.close()
	}
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
