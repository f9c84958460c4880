package ifname

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
)

// Interface is one link of a machine, as far as choosing needs it.
type Interface struct {
	Index   int
	Name    string
	MTU     int
	Running bool // up, and with a carrier
}

// Address is one address of an interface.
type Address struct {
	IfIndex int
	Prefix  netip.Prefix
}

// Host is what is chosen from.
type Host struct {
	Interfaces []Interface
	Addresses  []Address                                                    // in the kernel's order, which is getifaddrs': IPv4 by interface, then IPv6
	Resolve    func(ctx context.Context, name string) ([]netip.Addr, error) // nil: no name is looked up
}

func (h *Host) byIndex(index int) (Interface, bool) {
	for _, l := range h.Interfaces {
		if l.Index == index {
			return l, true
		}
	}
	return Interface{}, false
}

// Nothing explains an empty choice: every interface with what disqualified it.
func (h *Host) Nothing(k *knob.Values) error {
	family := k.Text(knob.SocketFamily)
	var have []string
	for _, l := range h.Interfaces {
		var addrs, others int
		for _, a := range h.Addresses {
			if a.IfIndex == l.Index && familyIs(a.Prefix.Addr(), family) {
				addrs++
			} else if a.IfIndex == l.Index {
				others++
			}
		}
		switch {
		case !l.Running:
			have = append(have, l.Name+" (down)")
		case addrs == 0 && others > 0:
			have = append(have, l.Name+" (no "+family+" address)")
		case addrs == 0:
			have = append(have, l.Name+" (no address)")
		default:
			have = append(have, l.Name)
		}
	}
	const most = 16 // NCCL's log cuts a line at 1024 bytes, and the remedy stands at its end
	if n := len(have) - most; n > 0 {
		have = append(have[:most], fmt.Sprintf("and %d more", n))
	}
	here := "this machine has " + strings.Join(have, ", ")
	if len(have) == 0 {
		here = "this machine has no interface"
	}
	if list := k.Text(knob.SocketIfname); len(list) > 1 {
		return report.Errorf(report.Usage, "devices", "NCCL_SOCKET_IFNAME=%s matches no running interface with an address; %s", list, here).
			Try("name one of these, or unset NCCL_SOCKET_IFNAME")
	}
	if family != "" {
		return report.Errorf(report.Usage, "devices", "no running interface has an address of NCCL_SOCKET_FAMILY=%s; %s", family, here).
			Try("unset NCCL_SOCKET_FAMILY, or give an interface such an address")
	}
	return report.Errorf(report.Host, "devices", "no running interface has an address; %s", here).
		Try("bring an interface up and give it an address")
}
