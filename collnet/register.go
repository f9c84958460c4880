package collnet

import (
	"weft/internal/report"
	"weft/transport/rdma"
)

// RegMr registers host memory.
func (c *Comm) RegMr(address uintptr, size uint64, kind rdma.MemKind) (uintptr, error) {
	return c.register("regMr", &region{address, size}, kind, func(l Link) (uintptr, error) { return l.RegMr(address, size, kind) })
}

// RegMrDmaBuf registers host memory behind a DMA-BUF.
func (c *Comm) RegMrDmaBuf(address uintptr, size, offset uint64, fd int, kind rdma.MemKind) (uintptr, error) {
	return c.register("regMrDmaBuf", &region{address, size}, kind, func(l Link) (uintptr, error) { return l.RegMrDmaBuf(address, size, offset, fd, kind) })
}

func (c *Comm) register(op string, r *region, kind rdma.MemKind, on func(Link) (uintptr, error)) (uintptr, error) {
	if kind != rdma.MemHost {
		return 0, c.errorf(report.Usage, op, "%v memory: the CPU reduces, and reads host memory only", kind).
			Try("NCCL stages GPU memory where the device reports host pointers only, as collNet's getProperties does")
	}
	if r.address+uintptr(r.size) < r.address {
		return 0, c.errorf(report.Misuse, op, "%d bytes at %#x reach beyond the address space", r.size, uint64(r.address))
	}
	var h uintptr
	if l := c.link(); l != nil {
		var err error
		if h, err = on(l); err != nil {
			return 0, err
		}
	}
	if h, open := c.regions.add(h, r); open {
		return h, nil
	}
	if l := c.link(); l != nil {
		_ = l.DeregMr(h) // the close of its links has, or will have, ended it
	}
	return 0, c.errorf(report.Misuse, op, "the comm was closed meanwhile")
}

// DeregMr ends a registration. Operations under way in it fail, and the comm with them: what is posted after it is gone does
// not find it, and what was posted before is taken here.
func (c *Comm) DeregMr(handle uintptr) error {
	c.pass.Lock()
	r := c.regions.remove(handle)
	if r == nil {
		c.pass.Unlock()
		return c.errorf(report.Misuse, "deregMr", "%#x is no registration of this comm", uint64(handle))
	}
	c.take()
	for _, o := range c.pending {
		if !o.done() && (o.send.uses(r) || o.recv.uses(r)) {
			c.giveUp(c.errorf(report.Misuse, "deregMr", "the host gave up what was in flight: %s used the %d bytes at %#x that it deregisters, as an abort does", o.name, r.size, uint64(r.address)))
			break
		}
	}
	c.pass.Unlock()
	if l := c.link(); l != nil {
		return l.DeregMr(handle)
	}
	return nil
}
