package doctor

import (
	"strings"

	"weft/internal/doctor/machine"
)

const gidTopic = "GIDs"

// gidRules: the address from which a RoCE port talks.
var gidRules = []Rule{
	{
		Code: "WEFT-040", Topic: gidTopic, Severity: Breaks,
		Title:       "NCCL_IB_GID_INDEX asks for an entry that is not there",
		Symptom:     "`ibv_modify_qp failed with error No such device`, `Call to ibv_query_gid failed`",
		Consequence: "the port is not used by weft; NCCL's own network fails at connect",
		check: func(x *Exam) (all []Finding) {
			w := x.gidWishes()
			for _, p := range x.roce() {
				if _, why, ok := w.choose(p, x.usable(p)); !ok && w.pin(p) >= 0 {
					all = append(all, seen(p.String(), "NCCL_IB_GID_INDEX=%s (%s): %s; usable are %s", w.setting.Value, w.setting.From, why, entries(x.usable(p))).
						with("NCCL_IB_GID_INDEX", "-1").mend("%s: weft chooses by itself", w.setting.Undo))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-041", Topic: gidTopic, Severity: Breaks,
		Title:       "NCCL_IB_GID_INDEX asks for a worse entry than there is",
		Symptom:     "`Got completion ... status=12 ... vendor err 129`: the address reaches nobody",
		Consequence: "a link-local address does not leave its link, and RoCE v1 is not routed; peers may have another kind at this index",
		check: func(x *Exam) (all []Finding) {
			w := x.gidWishes()
			for _, p := range x.roce() {
				chosen, _, ok := w.choose(p, x.usable(p))
				if !ok || w.pin(p) < 0 {
					continue
				}
				free := gidWishes{w.Unpinned(), machine.Setting{}}
				best, _, _ := free.choose(p, x.usable(p))
				if w.demerits(chosen) > w.demerits(best) {
					all = append(all, seen(p.String(), "NCCL_IB_GID_INDEX=%s (%s): entry %d is %s, entry %d is %s (%v)",
						w.setting.Value, w.setting.From, chosen.Index, kindOf(chosen), best.Index, kindOf(best), best.Addr.Unmap()).
						with("NCCL_IB_GID_INDEX", "-1").mend("%s: weft chooses by itself", w.setting.Undo))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-042", Topic: gidTopic, Severity: Breaks,
		Title:       "a RoCE port has no IP address",
		Symptom:     "status 12, or `connect timed out`, between hosts that are not on one link",
		Consequence: "the port has link-local GIDs only, which reach a neighbour on the same link and nobody else",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.roce() {
				if g := x.usable(p); len(g) > 0 && !x.addressed(p) && x.lonely(p) {
					all = append(all, seen(p.String(), "%s: %s", p.Path, entries(g)).
						mend("ip addr add ADDRESS/BITS dev %s, and make it last with netplan or NetworkManager", p.NetDev(x.Machine)))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-043", Topic: gidTopic, Severity: Slows,
		Title:       "a RoCE port has no entry of RoCE v2",
		Symptom:     "no connection between subnets; every flow takes one path through the fabric",
		Consequence: "RoCE v1 has no IP header: it is not routed, and switches cannot spread it",
		Remedy:      "cma_roce_mode -d DEVICE -p PORT -m 2",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.roce() {
				v2 := false
				for _, g := range p.GIDs {
					v2 = v2 || g.V2
				}
				if len(p.GIDs) > 0 && !v2 {
					all = append(all, seen(p.String(), "%s: %s", p.Path, entries(p.GIDs)).mend("cma_roce_mode -d %s -p %d -m 2", p.Card.Name, p.Number))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-044", Topic: gidTopic, Severity: Breaks,
		Title:       "one NCCL_IB_GID_INDEX means different kinds of addresses on different ports",
		Symptom:     "a job that ran fails after a reboot or netplan apply, on some rails",
		Consequence: "indices move when addresses come and go: ports of one rail no longer understand each other",
		check: func(x *Exam) []Finding {
			w := x.gidWishes()
			index := w.Pin("", 0) // of ports that no entry names
			if index < 0 {
				return nil
			}
			kinds := map[string][]string{}
			var order []string
			for _, p := range x.roce() {
				for _, g := range x.usable(p) {
					if g.Index != index || w.pin(p) != index {
						continue
					}
					k := kindOf(g)
					if kinds[k] == nil {
						order = append(order, k)
					}
					kinds[k] = append(kinds[k], p.String())
				}
			}
			if len(order) < 2 {
				return nil
			}
			var said []string
			for _, k := range order {
				said = append(said, k+" on "+strings.Join(kinds[k], ", "))
			}
			return seen("NCCL_IB_GID_INDEX", "entry %d is %s", index, strings.Join(said, "; ")).with("NCCL_IB_GID_INDEX", "-1").mend("%s: weft chooses by itself", w.setting.Undo).one()
		},
	},
	{
		Code: "WEFT-045", Topic: gidTopic, Severity: Breaks,
		Title:       "the network devices of RoCE ports are not in this network namespace",
		Symptom:     "`ibv_devices` lists cards in the container, and every GID is empty",
		Consequence: "no entry of the ports' tables can be used here: everything goes over TCP",
		Remedy:      "docker run --network=host ..., hostNetwork: true, or move the devices into the pod (SR-IOV CNI, host-device)",
		check: func(x *Exam) []Finding {
			var without []string
			for _, p := range x.roce() {
				if len(x.usable(p)) > 0 || p.NetDev(x.Machine) != "" && x.NIC(p.NetDev(x.Machine)) != nil {
					return nil
				}
				without = append(without, p.String())
			}
			if without == nil {
				return nil
			}
			return seen(without[0], "no GID of %s names a network device that is here", strings.Join(without, ", ")).one()
		},
	},
	{
		Code: "WEFT-046", Topic: gidTopic, Severity: Slows,
		Title:       "NCCL_IB_ADDR_RANGE contains no address of a port",
		Symptom:     "another subnet carries the traffic than the one that was meant",
		Consequence: "the best entry outside of the range is taken",
		check: func(x *Exam) (all []Finding) {
			w := x.gidWishes()
			for _, p := range x.roce() {
				g, _, ok := w.choose(p, x.usable(p))
				if ok && w.Within().IsValid() && w.pin(p) < 0 && !w.Within().Contains(g.Addr.Unmap()) {
					s := x.set("NCCL_IB_ADDR_RANGE")
					all = append(all, seen(p.String(), "NCCL_IB_ADDR_RANGE=%s (%s); %v takes entry %d, %v", s.Value, s.From, p, g.Index, g.Addr.Unmap()).with("NCCL_IB_ADDR_RANGE", "").mend("%s", s.Undo))
				}
			}
			return all
		},
	},
}

// roce are the used ports that are no InfiniBand.
func (x *Exam) roce() (all []*machine.Port) {
	for _, p := range x.used() {
		if !p.IB {
			all = append(all, p)
		}
	}
	return all
}

// lonely reports a port that no twin with an address stands in for, and whose rule is not the twins'.
func (x *Exam) lonely(p *machine.Port) bool {
	t := x.twin(p)
	return t == nil || !t.Active() || !x.addressed(t)
}

// entries are those of a table in a few words.
func entries(all []machine.GID) string {
	var said []string
	for _, g := range all {
		said = append(said, kindOfIndex(g))
	}
	if said == nil {
		return "none"
	}
	return strings.Join(said, "; ")
}
