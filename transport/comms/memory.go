package comms

import (
	"cmp"
	"errors"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/memory"
	"weft/transport/rdma"
)

// RegMr registers memory by its address. The executor checks every isend and
// irecv against it.
func (c *Comm) RegMr(addr uintptr, size uint64, kind rdma.MemKind) (uintptr, error) {
	m := c.registration("regMr", addr, size, kind)
	if kind == rdma.MemHost {
		m.CPU = addr
	}
	if err := cmp.Or(c.known(m.Op, kind), c.takes(m.Op, kind)); err != nil {
		return 0, err
	}
	if err := c.dev.ForCards(m); err != nil {
		return 0, err
	}
	return c.register(m)
}

// RegMrDmaBuf registers memory behind a DMA-BUF. The caller may close its
// descriptor at once.
func (c *Comm) RegMrDmaBuf(addr uintptr, size, offset uint64, fd int, kind rdma.MemKind) (uintptr, error) {
	m := c.registration("regMrDmaBuf", addr, size, kind)
	err := c.known(m.Op, kind)
	if err != nil {
		return 0, err
	}
	if _, cards := c.carrier.(carrier.OneSided); !cards {
		if err = m.Map(fd, offset); err != nil {
			return 0, report.Errorf(report.Host, m.Op, "fd %d, %d bytes at offset %d: %w", fd, size, offset, err).On(c.dev.Name).
				Try("this buffer cannot be read by the CPU, so TCP cannot carry it; set NCCL_DMABUF_ENABLE=0 and NCCL stages it through host memory")
		}
	} else if err = c.takes(m.Op, kind&^rdma.MemCUDA|rdma.MemDMABUF); err != nil { // the descriptor says what CUDA memory it is
		return 0, err
	} else if kind == rdma.MemHost { // for this device's comms over TCP
		m.CPU = addr
	}
	if err = c.dev.DMABufForCards(m, fd, offset); err != nil {
		m.Close()
		return 0, err
	}
	return c.register(m)
}

// known refuses a type that is none.
func (c *Comm) known(op string, kind rdma.MemKind) error {
	if kind == 0 || kind&^(rdma.MemHost|rdma.MemCUDA|rdma.MemDMABUF) != 0 {
		return report.Errorf(report.Misuse, op, "type %d is no kind of memory", kind).On(c.dev.Name).With(c.peer)
	}
	return nil
}

// takes refuses memory that the device, or what carries the comm, cannot use.
func (c *Comm) takes(op string, kind rdma.MemKind) error {
	_, cards := c.carrier.(carrier.OneSided)
	switch {
	case !cards && kind != rdma.MemHost:
		return report.Errorf(report.Usage, op, "%v memory cannot travel over TCP, which carries this connection", kind).On(c.dev.Name).With(c.peer).
			Try("set NCCL_NET_GDR_LEVEL=LOC and NCCL stages it through host memory; the line of the connection says why it is not over RDMA")
	case !c.dev.Pointers.Has(kind):
		return report.Errorf(report.Usage, op, "the device takes %v memory, not %v: %s", c.dev.Pointers, kind&^c.dev.Pointers, c.dev.WhyNot()).On(c.dev.Name).
			Try("NCCL stages it through host memory when the device reports host pointers only")
	}
	return nil
}

// registration is one that c's context begins.
func (c *Comm) registration(op string, addr uintptr, size uint64, kind rdma.MemKind) *memory.Registration {
	return &memory.Registration{Op: op, Owner: c.host.Owner, Log: c.host.Log, Device: c.dev.Index, Addr: addr, Size: size, Kind: kind}
}

// register makes m usable; when it fails m's resources are given back.
func (c *Comm) register(m *memory.Registration) (uintptr, error) {
	h, err := c.dev.Ports.Register(m)
	if err == nil {
		return h, nil
	}
	var e *report.Error
	switch {
	case errors.As(err, &e):
		if e.Dev == "" || e.Dev == c.dev.Name {
			return 0, e.On(c.dev.Name)
		}
		return 0, e.With(c.peer) // the device asked for is not the one that carries the comm
	case errors.Is(err, fastpath.ErrWraps):
		return 0, report.Errorf(report.Misuse, m.Op, "%w", err).On(c.dev.Name)
	}
	return 0, report.Errorf(report.Host, m.Op, "%d bytes at %#x: %w", m.Size, m.Addr, err).On(c.dev.Name).
		Try("see ulimit -v and the memory limit of the container")
}

// DeregMr ends a registration: afterwards nothing of weft reads or writes that
// memory. Comms with requests under way in it fail.
func (c *Comm) DeregMr(h uintptr) error {
	m, err := memory.Take(h)
	if err != nil {
		return err.On(c.dev.Name)
	}
	return c.deregister(m)
}

// deregister ends m, which nobody else ends.
func (c *Comm) deregister(m *memory.Registration) error {
	m.Hide()
	cut := report.Errorf(report.Misuse, "deregMr", "the host gave up what was in flight: requests used the %d bytes at %#x that it deregisters, as an abort does", m.Size, m.Addr).
		On(c.dev.Name).With(c.peer)
	fences.Lock()
	users, err := m.Revoke(c.code(cut))
	for _, fp := range users {
		if u, ok := comms.Get(fp.Cookie()); ok {
			u.gaveUp(cut)
			u.fenced.later()
			if s, is := u.carrier.(carrier.Streaming); is {
				s.Cut()
			}
		}
	}
	fences.Unlock()
	fences.wait()   // also of those that had failed before
	if err != nil { // a thread may still be inside the memory: leave the mapping
		return report.Errorf(report.Internal, "deregMr", "%w", err).On(c.dev.Name)
	}
	m.Release()
	return nil
}

// sweep ends what a context registered on a device, of which c is the last comm.
func (c *Comm) sweep() {
	for _, m := range c.dev.Ports.Close(c.host.Owner) {
		if !m.Claim() {
			continue // a deregMr has it
		}
		if err := c.deregister(m); err != nil {
			report.Say(c.host.Log, err)
		}
	}
}
