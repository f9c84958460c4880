package transport

import (
	"cmp"
	"errors"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// memory is one registration. It belongs to a device and is good on every comm
// of it, until deregMr or the end of its context's last comm there.
type memory struct {
	ctx    *Context
	dev    *Device
	op     string // the call that made it
	cookie uint64
	handle uintptr
	addr   uintptr // as the host names it
	base   uintptr // as it is registered
	cpu    uintptr // as the CPU reaches it; 0: it does not
	size   uint64
	kind   rdma.MemKind
	buffer *verbs.Buffer // nil: nothing for a port to reach
	mapped *mapping      // nil: none

	on [wire.MaxSlots]pinned // by slot; protected by dev.ports.mu
}

// pinned is memory on one port.
type pinned struct {
	pd     *verbs.PD
	region *verbs.Region // nil: not on that port
}

// RegMr registers memory by its address. The executor checks every isend and
// irecv against it.
func (c *Comm) RegMr(addr uintptr, size uint64, kind rdma.MemKind) (uintptr, error) {
	m := &memory{op: "regMr", addr: addr, base: addr, size: size, kind: kind}
	if kind == rdma.MemHost {
		m.cpu = addr
	}
	if err := cmp.Or(c.known(m.op, kind), c.takes(m.op, kind)); err != nil {
		return 0, err
	}
	if c.dev.Verbs != nil && size > 0 {
		var err error
		if m.buffer, err = verbs.NewBuffer(addr, size, kind); err != nil {
			return 0, err
		}
	}
	return c.register(m)
}

// RegMrDmaBuf registers memory behind a DMA-BUF. The caller may close its
// descriptor at once.
func (c *Comm) RegMrDmaBuf(addr uintptr, size, offset uint64, fd int, kind rdma.MemKind) (uintptr, error) {
	m := &memory{op: "regMrDmaBuf", addr: addr, base: addr, size: size, kind: kind}
	err := c.known(m.op, kind)
	if err != nil {
		return 0, err
	}
	if _, cards := c.carrier.(carrier.OneSided); !cards {
		if m.mapped, m.cpu, err = mapBuffer(fd, verbs.DMABufOffset(addr, offset), size); err != nil {
			return 0, report.Errorf(report.Host, m.op, "fd %d, %d bytes at offset %d: %w", fd, size, offset, err).On(c.dev.Name).
				Try("this buffer cannot be read by the CPU, so TCP cannot carry it; set NCCL_DMABUF_ENABLE=0 and NCCL stages it through host memory")
		}
	} else if err = c.takes(m.op, kind&^rdma.MemCUDA|rdma.MemDMABUF); err != nil { // the descriptor says what CUDA memory it is
		return 0, err
	} else if kind == rdma.MemHost { // for this device's comms over TCP
		m.cpu = addr
	}
	if c.dev.Verbs != nil && size > 0 && c.dev.Pointers.Has(rdma.MemDMABUF) {
		if m.buffer, err = verbs.NewDMABuf(addr, size, offset, fd, kind); err != nil {
			m.close()
			return 0, err
		}
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
		why := "it is one of TCP"
		if c.dev.Verbs != nil {
			_, why = c.dev.Verbs.GPUMemory()
		}
		return report.Errorf(report.Usage, op, "the device takes %v memory, not %v: %s", c.dev.Pointers, kind&^c.dev.Pointers, why).On(c.dev.Name).
			Try("NCCL stages it through host memory when the device reports host pointers only")
	}
	return nil
}

// register makes m usable; when it fails m's resources are given back.
func (c *Comm) register(m *memory) (uintptr, error) {
	m.ctx, m.dev = c.ctx, c.dev
	mrs.Add(func(id uint64) *memory { m.cookie = id; return m })
	err := c.dev.ports.add(m)
	if err == nil {
		return m.handle, nil
	}
	mrs.Take(m.cookie)
	m.close()
	var e *report.Error
	switch {
	case errors.As(err, &e):
		if e.Dev == "" || e.Dev == c.dev.Name {
			return 0, e.On(c.dev.Name)
		}
		return 0, e.With(c.peer) // the device asked for is not the one that carries the comm
	case errors.Is(err, fastpath.ErrWraps):
		return 0, report.Errorf(report.Misuse, m.op, "%w", err).On(c.dev.Name)
	}
	return 0, report.Errorf(report.Host, m.op, "%d bytes at %#x: %w", m.size, m.addr, err).On(c.dev.Name).
		Try("see ulimit -v and the memory limit of the container")
}

// pin registers m on a port. dev.ports.mu is held, as for the next three.
func (m *memory) pin(slot int, port *verbs.Device) error {
	if m.buffer == nil || m.on[slot].region != nil {
		return nil
	}
	pd, err := port.AcquirePD()
	if err != nil {
		return err
	}
	region, err := pd.Register(m.buffer, verbs.AccessData)
	if err != nil {
		m.say(pd.Release())
		return err
	}
	m.on[slot] = pinned{pd, region}
	return nil
}

// extend pins memory that is in use and tells the executor.
func (m *memory) extend(slot int, port *verbs.Device) error {
	if err := m.pin(slot, port); err != nil || m.on[slot].region == nil {
		return err
	}
	return fastpath.SetKeys(m.handle, slot, m.keys()[slot])
}

func (m *memory) unpin() {
	for i, p := range m.on {
		if p.region != nil {
			m.say(errors.Join(p.region.Release(), p.pd.Release()))
			m.on[i] = pinned{}
		}
	}
}

func (m *memory) keys() []fastpath.Keys {
	keys := make([]fastpath.Keys, len(m.on))
	for i, p := range m.on {
		if p.region != nil {
			keys[i] = fastpath.Keys{LKey: p.region.LKey, RKey: p.region.RKey}
		}
	}
	return keys
}

// close gives up what m is made of, once no port has it.
func (m *memory) close() {
	if m.buffer != nil {
		m.buffer.Close()
	}
	if m.mapped != nil {
		m.mapped.close()
	}
}

func (m *memory) say(err error) {
	if err != nil {
		report.Say(m.ctx.opts.Log, err)
	}
}

// DeregMr ends a registration: afterwards nothing of weft reads or writes that
// memory. Comms with requests under way in it fail.
func (c *Comm) DeregMr(h uintptr) error {
	cookie, err := fastpath.LookupMR(h)
	if err != nil {
		return report.Errorf(report.Misuse, "deregMr", "%w", err).On(c.dev.Name)
	}
	m, ok := mrs.Take(cookie)
	if !ok {
		return report.Errorf(report.Misuse, "deregMr", "%#x was deregistered before", uint64(h)).On(c.dev.Name)
	}
	return c.deregister(m)
}

// deregister ends m, which nobody else ends.
func (c *Comm) deregister(m *memory) error {
	m.dev.ports.remove(m)
	cut := report.Errorf(report.Misuse, "deregMr", "the host gave up what was in flight: requests used the %d bytes at %#x that it deregisters, as an abort does", m.size, m.addr).
		On(c.dev.Name).With(c.peer)
	cutting.Lock()
	users, err := fastpath.DeregisterMR(m.handle, c.code(cut))
	for _, fp := range users {
		if u, ok := comms.Get(fp.Cookie()); ok {
			u.gaveUp(cut)
			u.fenceLater()
		}
	}
	cutting.Unlock()
	waitForFences() // also of those that had failed before
	if err != nil { // a thread may still be inside the memory: leave the mapping
		return report.Errorf(report.Internal, "deregMr", "%w", err).On(c.dev.Name)
	}
	m.dev.ports.mu.Lock()
	m.unpin()
	m.dev.ports.mu.Unlock()
	m.close()
	return nil
}

// sweep ends what a context registered on a device, of which c is the last comm.
func (c *Comm) sweep() {
	for _, m := range c.dev.ports.close(c.ctx) {
		if _, ok := mrs.Take(m.cookie); !ok {
			continue // a deregMr has it
		}
		if err := c.deregister(m); err != nil {
			report.Say(c.ctx.opts.Log, err)
		}
	}
}
