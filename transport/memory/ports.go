package memory

import (
	"fmt"
	"slices"
	"sync"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/wire"
)

// Port is where a provider's cards are given memory.
type Port interface {
	// Pin has the port's card reach a buffer, until the region is released.
	Pin(*Buffer) (Region, error)
}

// Region is a buffer on one port.
type Region interface {
	Keys() fastpath.Keys // the card's names for it
	Release() error      // once it returns, the card reaches the buffer by these no more
}

// Ports are the ports that carry the comms of one device of the host, each in a
// slot. The host registers memory with a device and may use it on any comm of
// it, whatever carries the comm: so a registration has keys for every slot in use,
// and a slot that comes into use gets keys for all memory before a comm uses it.
type Ports struct {
	mu     sync.Mutex
	slots  []slot                     // protected by mu, as all below; the device's own ports first
	memory map[*Registration]struct{} // registered
	comms  map[Owner]int              // open, by what owns them
}

// Owner stands for what registers memory and has comms: a context of the host.
type Owner any

type slot struct {
	port  Port
	users int // carriers that run on it, or are being made
}

// NewPorts are those of a device that has some of its own.
func NewPorts(own ...Port) *Ports {
	p := &Ports{}
	for _, port := range own {
		p.slots = append(p.slots, slot{port: port})
	}
	return p
}

// Enter returns the slot of a port, for a carrier that is being made on it.
func (p *Ports) Enter(port Port) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.slots, func(s slot) bool { return s.port == port })
	if i < 0 {
		if len(p.slots) == wire.MaxSlots {
			return 0, fmt.Errorf("%d ports carry connections of this device already, no more can", wire.MaxSlots)
		}
		i = len(p.slots)
		p.slots = append(p.slots, slot{port: port})
	}
	s := &p.slots[i]
	if s.users == 0 {
		for m := range p.memory {
			if err := m.extend(i, port); err != nil {
				return 0, fmt.Errorf("memory that is registered already: %w", err)
			}
		}
	}
	s.users++
	return i, nil
}

// Leave ends a carrier's use of a slot. The slot stays the port's.
func (p *Ports) Leave(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots[i].users--
}

// Open counts a comm that the host has.
func (p *Ports) Open(o Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comms == nil {
		p.comms = map[Owner]int{}
	}
	p.comms[o]++
}

// Close counts one less. After its last comm on a device an owner can neither
// use nor deregister what it registered there: that is returned.
func (p *Ports) Close(o Owner) (left []*Registration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comms[o]--; p.comms[o] > 0 {
		return nil
	}
	delete(p.comms, o)
	for m := range p.memory {
		if m.Owner == o {
			left = append(left, m)
		}
	}
	return left
}

// Busy reports whether there are comms.
func (p *Ports) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.comms) > 0
}

// add registers m on every slot in use and makes it known to the executor. When
// it fails m has nothing.
func (p *Ports) add(m *Registration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comms[m.Owner] == 0 {
		return report.Errorf(report.Misuse, m.Op, "the comm was closed")
	}
	for i, s := range p.slots {
		if s.users == 0 {
			continue
		}
		if err := m.pin(i, s.port); err != nil {
			m.unpin()
			return err
		}
	}
	h, err := fastpath.RegisterMR(fastpath.MR{Device: uint32(m.Device), Addr: m.Addr, Base: m.Addr, CPU: m.CPU, Length: m.Size,
		Kind: uint32(m.Kind), Cookie: m.cookie, Keys: m.keys()})
	if err != nil {
		m.unpin()
		return err
	}
	m.handle = h
	if p.memory == nil {
		p.memory = map[*Registration]struct{}{}
	}
	p.memory[m] = struct{}{}
	return nil
}

// remove takes m off: no slot gets keys of it any more.
func (p *Ports) remove(m *Registration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.memory, m)
}
