package memory

import (
	"errors"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/task"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
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
	Buffer *mr.Buffer // nil: nothing for a port to reach

	ports  *Ports
	cookie uint64
	handle uintptr
	mapped *mapping              // nil: none
	on     [wire.MaxSlots]pinned // by slot; protected by ports.mu
}

// pinned is memory on one port.
type pinned struct {
	pd     *mr.PD
	region *mr.Region // nil: not on that port
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
func (m *Registration) pin(slot int, dev *port.Device) error {
	if m.Buffer == nil || m.on[slot].region != nil {
		return nil
	}
	pd, err := dev.AcquirePD()
	if err != nil {
		return err
	}
	region, err := pd.Register(m.Buffer, ibv.AccessData)
	if err != nil {
		m.say(pd.Release())
		return err
	}
	m.on[slot] = pinned{pd, region}
	return nil
}

// extend pins memory that is in use and tells the executor.
func (m *Registration) extend(slot int, dev *port.Device) error {
	if err := m.pin(slot, dev); err != nil || m.on[slot].region == nil {
		return err
	}
	return fastpath.SetKeys(m.handle, slot, m.keys()[slot])
}

func (m *Registration) unpin() {
	for i, p := range m.on {
		if p.region != nil {
			m.say(errors.Join(p.region.Release(), p.pd.Release()))
			m.on[i] = pinned{}
		}
	}
}

func (m *Registration) keys() []fastpath.Keys {
	keys := make([]fastpath.Keys, len(m.on))
	for i, p := range m.on {
		if p.region != nil {
			keys[i] = fastpath.Keys{LKey: p.region.LKey, RKey: p.region.RKey}
		}
	}
	return keys
}

func (m *Registration) say(err error) {
	if err != nil {
		report.Say(m.Log, err)
	}
}
