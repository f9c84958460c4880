package doctor

import (
	"slices"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
	"weft/transport/verbs/hca"
)

// mostInterfaces is what one search of NCCL's yields.
const mostInterfaces = 16

// sockets are the interfaces that weft takes for TCP, as NCCL's own sockets do, and why. A name in NCCL_COMM_ID is not looked up.
func (x *Exam) sockets() (all []*machine.NIC, why string) {
	k := x.knobs
	family := k.Text(knob.SocketFamily)
	if list := k.Text(knob.SocketIfname); len(list) > 1 {
		return x.searchNICs(list, family), "NCCL_SOCKET_IFNAME=" + list
	}
	if all := x.searchNICs("ib", family); len(all) > 0 {
		return all, "the name begins with ib"
	}
	for _, list := range []string{"^docker,lo,virbr", "docker", "lo", "virbr"} {
		if all := x.searchNICs(list, family); len(all) > 0 {
			return all, "default search " + list
		}
	}
	return nil, "default search"
}

// searchNICs lists the running interfaces that the list takes, in the order of their first address of the family.
func (x *Exam) searchNICs(list, family string) (all []*machine.NIC) {
	filter, _ := hca.Parse(list)
	for _, a := range x.Addresses() {
		n := x.NIC(a.Dev)
		if n == nil || !x.running(n) || slices.Contains(all, n) || len(all) == mostInterfaces {
			continue
		}
		if _, _, ok := filter.Takes(n.Name, -1); !ok {
			continue
		}
		if family == "AF_INET" && !a.Addr().Is4() || family == "AF_INET6" && !a.Addr().Is6() || a.Addr().Is6() && a.Addr().IsLoopback() {
			continue
		}
		all = append(all, n)
	}
	return all
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
