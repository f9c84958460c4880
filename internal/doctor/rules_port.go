package doctor

import (
	"fmt"
	"strings"

	"weft/internal/doctor/machine"
)

// portRules: the links of cards.
var portRules = []Rule{
	{
		Code: "WEFT-030", Topic: deviceTopic, Severity: Breaks,
		Title:       "a port has no link",
		Symptom:     "`ibv_devinfo` says PORT_DOWN; a rank has fewer devices than others",
		Consequence: "the port carries nothing: its rail is missing on this host, and collectives wait for the rest",
		Remedy:      "look at cable, transceiver and switch port (mlxlink -d DEVICE -m), then: ip link set NETDEV up",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.Ports() {
				_, filter := x.hca()
				if p.State != "DOWN" || !taken(filter, p) || !x.wanted(p) {
					continue
				}
				all = append(all, seen(p.String(), "%s/state is %s, phys_state %s", p.Path, p.State, p.Phys))
			}
			return all
		},
	},
	{
		Code: "WEFT-031", Topic: deviceTopic, Severity: Breaks,
		Title:       "an InfiniBand port waits for a subnet manager",
		Symptom:     "`ibstat` says State: Initializing",
		Consequence: "the port has no address (LID) and carries nothing",
		Remedy:      "systemctl start opensm on one host, or the subnet manager of the switch",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.Ports() {
				if p.IB && p.State == "INIT" {
					all = append(all, seen(p.String(), "%s/state is %s, phys_state %s", p.Path, p.State, p.Phys))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-032", Topic: deviceTopic, Severity: Slows,
		Title:       "a link runs on fewer lanes than its kind has",
		Symptom:     "one rail has half or a quarter of the bandwidth; `ibstat` shows a lower Rate",
		Consequence: "the port is as slow as its lanes, and collectives as slow as the port",
		Remedy:      "clean and reseat cable and transceiver; mlxlink -d DEVICE shows the lanes that failed",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				if most := x.mostLanes(p); p.Lanes > 0 && p.Lanes < most {
					all = append(all, seen(p.String(), "%s/rate is %s; other ports of %s have %dX", p.Path, p.Rate, p.Card.Board, most))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-033", Topic: deviceTopic, Severity: Slows,
		Title:       "ports of unequal speed are used together",
		Symptom:     "bandwidth is a multiple of the slowest card",
		Consequence: "NCCL takes the devices of one host for equally fast and gives each the same share",
		check: func(x *Exam) []Finding {
			slow, fast := 0.0, 0.0
			var said []string
			for _, p := range x.used() {
				if p.Gbps == 0 || p.Lanes > 0 && p.Lanes < x.mostLanes(p) {
					continue
				}
				if slow == 0 || p.Gbps < slow {
					slow = p.Gbps
				}
				fast = max(fast, p.Gbps)
				said = append(said, fmt.Sprintf("%v %g Gb/s", p, p.Gbps))
			}
			if slow == fast {
				return nil
			}
			var keep []string
			for _, p := range x.used() {
				if p.Gbps == fast {
					keep = append(keep, p.String())
				}
			}
			return seen("NCCL_IB_HCA", "%s", strings.Join(said, ", ")).export("NCCL_IB_HCA", "="+strings.Join(keep, ",")).one()
		},
	},
	{
		Code: "WEFT-034", Topic: deviceTopic, Severity: Slows,
		Title:       "InfiniBand and RoCE ports are used together",
		Symptom:     "init fails or falls back to TCP between some pairs of ranks",
		Consequence: "the two cannot talk to each other: a pair of devices that NCCL chose has no path",
		check: func(x *Exam) []Finding {
			var ib, roce []string
			for _, p := range x.used() {
				if p.IB {
					ib = append(ib, p.String())
				} else {
					roce = append(roce, p.String())
				}
			}
			if ib == nil || roce == nil {
				return nil
			}
			keep := ib
			if len(roce) > len(ib) {
				keep = roce
			}
			return seen("NCCL_IB_HCA", "InfiniBand: %s; Ethernet: %s", strings.Join(ib, ", "), strings.Join(roce, ", ")).
				export("NCCL_IB_HCA", "="+strings.Join(keep, ",")).one()
		},
	},
	{
		Code: "WEFT-035", Topic: deviceTopic, Severity: Slows,
		Title:       "a link goes down and comes back",
		Symptom:     "`Got async event : port error`, status 12 now and then; a job slows down for seconds",
		Consequence: "connections over the port are recovered again and again, or end",
		Remedy:      "look at cable, transceiver and switch port: mlxlink -d DEVICE -m -c; ethtool -S NETDEV | grep -i phy",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				if c, ok := x.Counter(p.Path, "counters/link_downed"); ok && (c.Total > manyFlaps || c.Rising > 0) {
					all = append(all, seen(p.String(), "%s/counters/%v", p.Path, c))
				}
			}
			return all
		},
	},
}

// manyFlaps is more than reboots of switches and hands on cables make.
const manyFlaps = 20

// wanted reports a port that somebody meant to use: of RoCE one whose network device has an address or is up.
func (x *Exam) wanted(p *machine.Port) bool {
	if p.IB {
		return p.Phys != "Disabled"
	}
	n := x.NIC(p.NetDev(x.Machine))
	if n == nil {
		return false
	}
	for _, a := range n.Addrs {
		if !a.Addr().IsLinkLocalUnicast() {
			return true
		}
	}
	return false
}

// mostLanes are those of the widest active port of the same kind of card.
func (x *Exam) mostLanes(p *machine.Port) (most int) {
	for _, o := range x.Ports() {
		if o.Active() && o.Card.Board == p.Card.Board && p.Card.Board != "" {
			most = max(most, o.Lanes)
		}
	}
	return most
}
