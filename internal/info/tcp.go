package info

import (
	"slices"

	"weft/internal/doctor"
)

// TCP is what carries connections that RDMA does not, and sets up those that it does.
type TCP struct {
	Why        string      `json:"why" doc:"why weft takes the interfaces that it takes"`
	Interfaces []Interface `json:"interfaces" doc:"network devices, by name"`
}

// Interface is a network device.
type Interface struct {
	Name      string   `json:"name" doc:"the kernel's"`
	Up        bool     `json:"up" doc:"up, and with a carrier"`
	Mbps      int64    `json:"mbps" doc:"in Mb/s; 0: not told"`
	MTU       int64    `json:"mtu" doc:"in bytes"`
	Kind      string   `json:"kind,omitempty" doc:"bridge, bond, vlan, veth, tun ...; absent: a card"`
	PCI       string   `json:"pci,omitempty" doc:"address of its function; absent: none"`
	NUMA      int64    `json:"numa" doc:"node of its processor; -1: not told"`
	Addresses []string `json:"addresses" doc:"with the lengths of their subnets"`
	Index     *int     `json:"index,omitempty" doc:"place among those that weft takes for TCP; absent: it takes others"`
}

func interfaces(x *doctor.Exam) TCP {
	used, why := x.Sockets()
	t := TCP{Why: why, Interfaces: []Interface{}}
	for _, n := range x.NICs() {
		i := Interface{Name: n.Name, Up: n.Up, Mbps: n.Mbps, MTU: n.MTU, Kind: n.Kind, NUMA: -1, Addresses: []string{}}
		if n.PCI != nil {
			i.PCI, i.NUMA = n.PCI.Address, n.PCI.NUMA
		}
		for _, a := range n.Addrs {
			i.Addresses = append(i.Addresses, a.String())
		}
		if at := slices.Index(used, n); at >= 0 {
			i.Index = &at
		}
		t.Interfaces = append(t.Interfaces, i)
	}
	return t
}
