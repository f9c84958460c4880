package machine

import (
	"net/netip"
	"path"
	"strings"
)

// NIC is a network device.
type NIC struct {
	Name    string
	Path    string // in sysfs, resolved
	Index   int64
	MTU     int64
	Up      bool      // up, and with a carrier
	Mbps    int64     // 0: not told
	PCI     *Function // nil: none below it
	Virtual bool      // made by software
	Kind    string    // of the kernel's kinds: bridge, bond, vlan, vxlan ...; tun, veth; "": a card
	Master  string    // the bond or bridge that it belongs to
	Port    string    // on the card: p0
	Addrs   []netip.Prefix
}

// Address is one of a network device.
type Address struct {
	Dev string
	netip.Prefix
}

const netFolder = "/sys/class/net"

// NICs are the network devices, by name.
func (m *Machine) NICs() []*NIC { return m.nics() }

// NIC is the one of a name; nil: there is none.
func (m *Machine) NIC(name string) *NIC {
	for _, n := range m.NICs() {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Addresses are those of all network devices, in the kernel's order.
func (m *Machine) Addresses() []Address { return m.kernel.addresses() }

func (m *Machine) readNICs() (all []*NIC) {
	addresses := m.Addresses()
	for _, name := range m.List(netFolder) {
		at, err := m.resolve(path.Join(netFolder, name))
		if err != nil || !m.Exists(at, "flags") {
			continue // bonding_masters is a file
		}
		n := &NIC{Name: name, Path: at, PCI: m.function(at, "device"), Master: m.base(at, "master"), Port: m.Text(at, "phys_port_name")}
		n.Index, _ = m.Int(at, "ifindex")
		n.MTU, _ = m.Int(at, "mtu")
		n.Mbps, _ = m.Int(at, "speed")
		n.Mbps = max(n.Mbps, 0) // -1: unknown
		up, _ := m.Int(at, "flags")
		n.Up = up&1 != 0 && m.Text(at, "carrier") == "1"
		n.Virtual = n.PCI == nil && !m.Exists(at, "device")
		n.Kind = m.kind(at, n)
		for _, a := range addresses {
			if a.Dev == name {
				n.Addrs = append(n.Addrs, a.Prefix)
			}
		}
		all = append(all, n)
	}
	return all
}

func (m *Machine) kind(at string, n *NIC) string {
	for line := range strings.Lines(m.Text(at, "uevent")) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
			return kind
		}
	}
	peer, ok := m.Int(at, "iflink")
	switch {
	case m.Exists(at, "bridge"):
		return "bridge"
	case m.Exists(at, "bonding"):
		return "bond"
	case m.Exists(at, "tun_flags"):
		return "tun"
	case n.Virtual && ok && peer != n.Index:
		return "veth"
	}
	return ""
}
