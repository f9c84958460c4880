package transport

import (
	"fmt"
	"slices"
	"sync"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// ports are the ports that carry the comms of one device of the host, each in a
// slot. The host registers memory with a device and may use it on any comm of
// it, whatever carries that: so a registration has keys for every slot in use,
// and a slot that comes into use gets keys for all memory before a comm uses it.
type ports struct {
	mu     sync.Mutex
	slots  []slot               // protected by mu, as all below; the device's own ports first
	memory map[*memory]struct{} // registered
	comms  map[*Context]int     // open, by what owns them
}

type slot struct {
	port  *verbs.Device
	users int // carriers that run on it, or are being made
}

// enter answers the slot of a port, for a carrier that is being made on it.
func (p *ports) enter(port *verbs.Device) (int, error) {
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

// leave ends a carrier's use of a slot. The slot stays the port's.
func (p *ports) leave(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots[i].users--
}

// open counts a comm that the host has.
func (p *ports) open(x *Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comms == nil {
		p.comms = map[*Context]int{}
	}
	p.comms[x]++
}

// close counts one less. After its last comm on a device a context can neither
// use nor deregister what it registered there: that is answered.
func (p *ports) close(x *Context) (left []*memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comms[x]--; p.comms[x] > 0 {
		return nil
	}
	delete(p.comms, x)
	for m := range p.memory {
		if m.ctx == x {
			left = append(left, m)
		}
	}
	return left
}

// add registers m on every slot in use and makes it known to the executor. When
// it fails m has nothing.
func (p *ports) add(m *memory) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comms[m.ctx] == 0 {
		return report.Errorf(report.Misuse, m.op, "the comm was closed")
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
	h, err := fastpath.RegisterMR(fastpath.MR{Device: uint32(m.dev.Index), Addr: m.addr, Base: m.base, CPU: m.cpu, Length: m.size,
		Kind: uint32(m.kind), Cookie: m.cookie, Keys: m.keys()})
	if err != nil {
		m.unpin()
		return err
	}
	m.handle = h
	if p.memory == nil {
		p.memory = map[*memory]struct{}{}
	}
	p.memory[m] = struct{}{}
	return nil
}

// remove takes m off: no slot gets keys of it any more.
func (p *ports) remove(m *memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.memory, m)
}
