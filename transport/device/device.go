// Package device is what the host sees: its devices, and those that it has made
// of several.
package device

import (
	"slices"

	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/verbs"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// Device is one device as the host sees it: what its tables report, and what
// carries its connections.
type Device struct {
	rdma.Device
	TCP   *tcp.Device  // carries rendezvous and control connections, and data when verbs cannot; never nil
	Verbs *port.Device // nil: an interface that only TCP runs on

	Ports   *memory.Ports // that carry its comms
	members []*Device     // that it is made of; nil: only itself

	TCPTold, SlowerTold report.Aloud // that TCP carries a comm; that slower ports do
}

// Found makes the host's list: the RDMA devices if there are any, else the
// interfaces. An RDMA device's TCP runs on the network device behind its GIDs
// if that is one of the interfaces, else on the first.
func Found(interfaces []*tcp.Device, p *verbs.Provider) []*Device {
	var out []*Device
	if p == nil || len(interfaces) == 0 {
		for _, d := range interfaces {
			out = append(out, &Device{Device: d.Device, TCP: d, Ports: memory.NewPorts()})
		}
		return out
	}
	for _, v := range p.Devices() {
		out = append(out, &Device{Device: v.Device, TCP: interfaceOf(v, interfaces), Verbs: v, Ports: memory.NewPorts(v)})
	}
	return out
}

func interfaceOf(v *port.Device, interfaces []*tcp.Device) *tcp.Device {
	for _, g := range v.GIDs() {
		for _, d := range interfaces {
			if g.NetDev == d.Name {
				return d
			}
		}
	}
	for _, d := range interfaces { // another name for the same subnet, such as a bond or a VLAN
		if slices.ContainsFunc(v.GIDs(), func(g gid.GID) bool { return d.Reaches(g.Addr) }) {
			return d
		}
	}
	return interfaces[0]
}

// parts are the devices that d is made of, at least itself.
func (d *Device) parts() []*Device {
	if d.members == nil {
		return []*Device{d}
	}
	return d.members
}

// Members are the indices of the devices that d is made of, at least its own.
func (d *Device) Members() (all []int) {
	for _, p := range d.parts() {
		all = append(all, p.Index)
	}
	return all
}

// Indices are Members as the wire has them.
func (d *Device) Indices() (all []uint16) {
	for _, i := range d.Members() {
		all = append(all, uint16(i))
	}
	return all
}

// OutOfUse says which of d's own ports cannot be used at the moment, and why.
func (d *Device) OutOfUse() (all []string) {
	for _, p := range d.parts() {
		why := ""
		if p.Verbs != nil {
			why = p.Verbs.Down()
		} else {
			why = p.TCP.Down()
		}
		if why != "" {
			all = append(all, p.Name+": "+why)
		}
	}
	return all
}

// link is what a device's connections travel on.
func (d *Device) link() string {
	switch {
	case d.Verbs == nil:
		return "TCP"
	case d.Verbs.InfiniBand:
		return "InfiniBand"
	}
	return "RoCE"
}

// Interfaces are what d's TCP runs on.
func (d *Device) Interfaces() (all []*tcp.Device) {
	for _, p := range d.parts() {
		if !slices.Contains(all, p.TCP) {
			all = append(all, p.TCP)
		}
	}
	return all
}

// Streams is how many streams a connection to a listen on d gets.
func (d *Device) Streams() int {
	n := 0
	for _, i := range d.Interfaces() {
		n += max(1, i.Streams)
	}
	return min(n, wire.MaxStreams)
}
