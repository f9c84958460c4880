package doctor

import (
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/report"
	"weft/transport/tcp/ifname"
)

// sockets are the interfaces that weft takes for TCP, by its own choice, and why. A name in NCCL_COMM_ID is not looked up.
func (x *Exam) sockets() (all []*machine.NIC, why string) {
	nics, h := x.NICs(), &ifname.Host{}
	at := map[string]int{}
	for i, n := range nics {
		at[n.Name] = i
		h.Interfaces = append(h.Interfaces, ifname.Interface{Index: i, Name: n.Name, MTU: int(n.MTU), Running: x.running(n)})
	}
	for _, a := range x.Addresses() {
		if i, here := at[a.Dev]; here {
			h.Addresses = append(h.Addresses, ifname.Address{IfIndex: i, Prefix: a.Prefix})
		}
	}
	chosen, why := h.Choose(x.knobs, report.Discard{})
	for _, c := range chosen {
		all = append(all, nics[c.Index])
	}
	return all, why
}

// running reports an interface that is up; of the loopback device no carrier is asked.
func (x *Exam) running(n *machine.NIC) bool { return n.Up || n.Name == "lo" }

func nicNames(all []*machine.NIC) string {
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}
