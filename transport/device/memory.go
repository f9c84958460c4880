package device

import (
	"weft/transport/memory"
	"weft/transport/rdma"
)

// ForCards has d's cards reach m once it is registered. TCP copies: a device of
// TCP has no cards, and nothing is done.
func (d *Device) ForCards(m *memory.Registration) (err error) {
	if d.Verbs == nil || m.Size == 0 {
		return nil
	}
	m.Buffer, err = memory.NewBuffer(m.Addr, m.Size, m.Kind)
	return err
}

// DMABufForCards is ForCards of memory at offset of the DMA-BUF fd, which the
// caller may close at once.
func (d *Device) DMABufForCards(m *memory.Registration, fd int, offset uint64) (err error) {
	if d.Verbs == nil || m.Size == 0 || !d.Pointers.Has(rdma.MemDMABUF) {
		return nil
	}
	m.Buffer, err = memory.NewDMABuf(m.Addr, m.Size, offset, fd, m.Kind)
	return err
}

// WhyNot is why d takes no more kinds of memory than Pointers has.
func (d *Device) WhyNot() string {
	if d.Verbs == nil {
		return "it is one of TCP"
	}
	_, why := d.Verbs.GPUMemory()
	return why
}

// RegIsGlobal reports whether memory registered on one connection of d is worth
// keeping for its others. TCP registers nothing.
func (d *Device) RegIsGlobal() bool { return d.Verbs != nil }
