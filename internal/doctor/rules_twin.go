package doctor

import (
	"strings"

	"weft/internal/doctor/machine"
)

// twinRules: ports that two PCIe functions share, as on a DGX Spark: each function carries about half of what the port does.
var twinRules = []Rule{
	{
		Code: "WEFT-036", Topic: deviceTopic, Severity: Slows,
		Title:       "one of the two PCIe functions of a port is not used",
		Symptom:     "about 100 Gb/s over a port of 200 Gb/s",
		Consequence: "a function reaches about half of the port's rate: the other half is lost",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				t := x.twin(p)
				if t == nil || !x.addressed(p) {
					continue
				}
				_, filter := x.hca()
				f := seen(t.String(), "%v and %v are one port (sys_image_guid %s, %s)", p, t, p.Card.SystemGUID, x.portName(p))
				switch dev := t.NetDev(x.Machine); {
				case !taken(filter, t):
					all = append(all, f.export("NCCL_IB_HCA", also(x.set("NCCL_IB_HCA").Value, x.used(), t)))
				case !t.Active():
					f.Evidence += "; the second is " + t.State
					all = append(all, f.mend("ip link set %s up", dev))
				case !x.addressed(t):
					f.Evidence += "; the second has no address"
					all = append(all, f.mend("ip addr add ADDRESS/BITS dev %s, in a subnet of its own, and the same on the other host", dev))
				}
			}
			return all
		},
	},
}

// also is a list that takes one port more: of a list that leaves ports out, those that it left and the one.
func also(list string, used []*machine.Port, t *machine.Port) string {
	if !strings.HasPrefix(list, "^") {
		return list + "," + t.Card.Name
	}
	return "=" + strings.ReplaceAll(portNames(append(used, t)), ", ", ",")
}

// twin is the other function of a port's; nil: it has none.
func (x *Exam) twin(p *machine.Port) *machine.Port {
	if p.Card.PCI == nil || p.Card.SystemGUID == "" || p.Card.PCI.Physical != "" {
		return nil
	}
	for _, o := range x.Ports() {
		if o.Card.PCI == nil || o.Card.PCI.Physical != "" || o.Card.SystemGUID != p.Card.SystemGUID || o.Number != p.Number {
			continue
		}
		if slot(o.Card.PCI) != slot(p.Card.PCI) && x.portName(o) == x.portName(p) {
			return o
		}
	}
	return nil
}

// slot is a function's address without the number of the function.
func slot(f *machine.Function) string { s, _, _ := strings.Cut(f.Address, "."); return s }

// portName is the port's on its card, or else the number of its function.
func (x *Exam) portName(p *machine.Port) string {
	if n := x.NIC(p.NetDev(x.Machine)); n != nil && n.Port != "" {
		return n.Port
	}
	_, number, _ := strings.Cut(p.Card.PCI.Address, ".")
	return "p" + number
}

// addressed reports a port with an address that a subnet has: of InfiniBand every one.
func (x *Exam) addressed(p *machine.Port) bool {
	for _, g := range p.GIDs {
		if p.IB || !g.LinkLocal() {
			return true
		}
	}
	return false
}
