package doctor

import (
	"fmt"
	"strings"
)

const mtuTopic = "MTU"

// mtuRules: the largest frame of RoCE ports and interfaces.
var mtuRules = []Rule{
	{
		Code: "WEFT-060", Topic: mtuTopic, Severity: Breaks,
		Title:       "ports that are used together have different MTUs",
		Symptom:     "small messages arrive, large ones hang; status 12 or 1 (local length error)",
		Consequence: "two ports that talk to each other lose what is larger than the smaller one takes, where nobody tells them",
		check: func(x *Exam) []Finding {
			mtus := map[int64][]string{}
			var order []int64
			most := int64(0)
			for _, p := range x.roce() {
				n := x.NIC(p.NetDev(x.Machine))
				if n == nil || !x.addressed(p) {
					continue
				}
				if mtus[n.MTU] == nil {
					order = append(order, n.MTU)
				}
				mtus[n.MTU] = append(mtus[n.MTU], n.Name)
				most = max(most, n.MTU)
			}
			if len(order) < 2 {
				return nil
			}
			var said, mends []string
			for _, mtu := range order {
				said = append(said, fmt.Sprintf("%d on %s", mtu, strings.Join(mtus[mtu], ", ")))
				for _, dev := range mtus[mtu] {
					if mtu != most {
						mends = append(mends, fmt.Sprintf("ip link set %s mtu %d", dev, most))
					}
				}
			}
			return seen("", "MTU %s", strings.Join(said, "; ")).mend("%s (and the switch, and the other hosts)", strings.Join(mends, "; ")).one()
		},
	},
	{
		Code: "WEFT-061", Topic: mtuTopic, Severity: Slows,
		Title:       "a fast RoCE port has the MTU of slow Ethernet",
		Symptom:     "RDMA bandwidth some percent below the line; more packets a second than the card likes",
		Consequence: "RDMA takes 1024 bytes a packet, where 4096 would fit into a frame of 9000",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.roce() {
				if n := x.NIC(p.NetDev(x.Machine)); n != nil && n.MTU < 4200 && p.Gbps >= 100 && x.addressed(p) && x.mtusAgree() {
					all = append(all, seen(p.String(), "%s has MTU %d, and %g Gb/s", n.Name, n.MTU, p.Gbps).
						mend("ip link set %s mtu 9000, here, on the switch and on every host of the fabric", n.Name))
				}
			}
			return all
		},
	},
}

// mtusAgree reports that all RoCE ports in use have one MTU: where they have not, that is told first.
func (x *Exam) mtusAgree() bool {
	first := int64(0)
	for _, p := range x.roce() {
		n := x.NIC(p.NetDev(x.Machine))
		if n == nil || !x.addressed(p) {
			continue
		}
		if first != 0 && n.MTU != first {
			return false
		}
		first = n.MTU
	}
	return true
}
