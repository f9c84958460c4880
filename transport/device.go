package transport

import (
	"slices"

	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/verbs"
)

// Device is one device as the host sees it: what its tables report, and what
// carries its connections.
type Device struct {
	rdma.Device
	TCP   *tcp.Device   // carries rendezvous and control connections, and data when verbs cannot; never nil
	Verbs *verbs.Device // nil: an interface that only TCP runs on

	members []*Device // that it is made of; nil: only itself
	ports   ports     // that carry its comms

	tcpTold, slowerTold told // that TCP carries a comm; that slower ports do
}

// Devices makes the host's list: the RDMA devices if there are any, else the
// interfaces. An RDMA device's TCP runs on the network device behind its GIDs
// if that is one of the interfaces, else on the first.
func Devices(interfaces []*tcp.Device, p *verbs.Provider) []*Device {
	var out []*Device
	if p == nil || len(interfaces) == 0 {
		for _, d := range interfaces {
			out = append(out, &Device{Device: d.Device, TCP: d})
		}
		return out
	}
	for _, v := range p.Devices() {
		out = append(out, &Device{Device: v.Device, TCP: interfaceOf(v, interfaces), Verbs: v, ports: ports{slots: []slot{{port: v}}}})
	}
	return out
}

func interfaceOf(v *verbs.Device, interfaces []*tcp.Device) *tcp.Device {
	for _, g := range v.GIDs() {
		for _, d := range interfaces {
			if g.NetDev == d.Name {
				return d
			}
		}
	}
	for _, d := range interfaces { // another name for the same subnet, such as a bond or a VLAN
		if slices.ContainsFunc(v.GIDs(), func(g verbs.GID) bool { return d.Reaches(g.Addr) }) {
			return d
		}
	}
	return interfaces[0]
}
