package memory

import (
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/task"
	"weft/transport/wire"
)

// Registration is memory that the host has registered. It belongs to a device
// and is good on every comm of it, until deregMr or the end of its owner's last
// comm there.
type Registration struct {
	Op     string // the call that makes it
	Owner  Owner
	Log    report.Logger // of the owner
	Device int           // index, as the host counts
	Addr   uintptr       // as the host names it
	CPU    uintptr       // as the CPU reaches it; 0: it does not
	Size   uint64
	Kind   rdma.MemKind
	Buffer *Buffer // nil: nothing for a port to reach

	ports  *Ports
	cookie uint64
	handle uintptr
	mapped *mapping              // nil: none
	on     [wire.MaxSlots]Region // by slot, nil: not on that port; protected by ports.mu
}

// all are the registrations of the process: their handles travel through the
// host, which does not say whose they are.
var all = task.NewIDs[*Registration](0)

// Register makes m usable on the device that has p, and returns the host's
// handle. When it fails m's resources are given back.
func (p *Ports) Register(m *Registration) (uintptr, error) {
	m.ports = p
	all.Add(func(id uint64) *Registration { m.cookie = id; return m })
	if err := p.add(m); err != nil {
		all.Take(m.cookie)
		m.Close()
		return 0, err
	}
	return m.handle, nil
}

// Take finds what the host deregisters: who has it ends it.
func Take(handle uintptr) (*Registration, *report.Error) {
	cookie, err := fastpath.LookupMR(handle)
	if err != nil {
		return nil, report.Errorf(report.Misuse, "deregMr", "%w", err)
	}
	m, ok := all.Take(cookie)
	if !ok {
		return nil, report.Errorf(report.Misuse, "deregMr", "%#x was deregistered before", uint64(handle))
	}
	return m, nil
}

// Claim is Take of a registration at hand; false: a deregMr has it.
func (m *Registration) Claim() bool {
	_, ok := all.Take(m.cookie)
	return ok
}

// Hide keeps ports that come into use from getting m.
func (m *Registration) Hide() { m.ports.remove(m) }

// Revoke ends m for the executor, and every comm with requests in it, with code:
// these comms are returned. An error: a thread may still be inside the memory.
func (m *Registration) Revoke(code int32) ([]*fastpath.Comm, error) {
	return fastpath.DeregisterMR(m.handle, code)
}

// Release ends what m has on ports, and m.
func (m *Registration) Release() {
	m.ports.mu.Lock()
	m.unpin()
	m.ports.mu.Unlock()
	m.Close()
}

// Close gives up what m is made of, once no port has it.
func (m *Registration) Close() {
	if m.Buffer != nil {
		m.Buffer.Close()
	}
	if m.mapped != nil {
		m.mapped.close()
	}
}

// pin registers m on a port. ports.mu is held, as for the next three.
func (m *Registration) pin(slot int, port Port) (err error) {
	if m.Buffer == nil || m.on[slot] != nil {
		return nil
	}
	m.on[slot], err = port.Pin(m.Buffer)
	return err
}

// extend pins memory that is in use and tells the executor.
func (m *Registration) extend(slot int, port Port) error {
	if err := m.pin(slot, port); err != nil || m.on[slot] == nil {
		return err
	}
	return fastpath.SetKeys(m.handle, slot, m.keys()[slot])
}

func (m *Registration) unpin() {
	for i, region := range m.on {
		if region != nil {
			m.say(region.Release())
			m.on[i] = nil
		}
	}
}

func (m *Registration) keys() []fastpath.Keys {
	keys := make([]fastpath.Keys, len(m.on))
	for i, region := range m.on {
		if region != nil {
			keys[i] = region.Keys()
		}
	}
	return keys
}

func (m *Registration) say(err error) {
	if err != nil {
		report.Say(m.Log, err)
	}
}
