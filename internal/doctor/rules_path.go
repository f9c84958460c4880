package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// pathRule is about what is between two hosts, as their probes have found it.
var pathRule = Rule{
	Code: "WEFT-170", Topic: "Across hosts", Severity: Breaks, Title: "the path between two hosts takes smaller packets than both do",
	Symptom:     "ranks connect, and hang once they send more than a few KB: NCCL's bootstrap, TCP; RDMA ends with status 12",
	Consequence: "full segments of TCP and RDMA packets of path MTU 4096 vanish on the way: NCCL's own sockets hang, and weft goes on with smaller packets, slower",
	Remedy:      "raise the MTU of switches and tunnels on the way, or lower that of both ends: ip link set DEVICE mtu N", across: narrowPaths,
}

// narrow are paths that take less than the same MTU of their ends, as somebody on the way tells or nobody does.
type narrow struct {
	full   int64
	told   bool
	passes int64 // the least of them
	paths  []string
	ends   [][2]string // host and device, and device
}

// narrowPaths has one finding for all paths that one port of a switch may narrow: some let a few bytes more pass one way.
func narrowPaths(hosts []Host) (found []Finding) {
	var all []*narrow
	well := map[string]bool{} // ends of which a path is
	for _, h := range hosts {
		for _, p := range h.Paths {
			from, to := h.Name+" "+p.From, p.Host+" "+p.To
			switch {
			case p.Unprobed != "":
				continue
			case p.Passes >= p.full():
				well[from], well[to] = true, true
				continue
			}
			i := slices.IndexFunc(all, func(n *narrow) bool { return n.full == p.full() && n.told == p.Told })
			if i < 0 {
				i = len(all)
				all = append(all, &narrow{full: p.full(), told: p.Told, passes: p.Passes})
			}
			n := all[i]
			n.passes = min(n.passes, p.Passes)
			n.paths = append(n.paths, fmt.Sprintf("%d from %s (MTU %d) to %s (MTU %d)", p.Passes, from, p.MTU, to, p.PeerMTU))
			n.ends = append(n.ends, [2]string{from, p.From}, [2]string{to, p.To})
		}
	}
	for _, n := range all {
		found = append(found, n.finding(well))
	}
	return found
}

func (n *narrow) finding(well map[string]bool) Finding {
	var ends, suspects, lower []string
	for _, e := range n.ends {
		if ends = append(ends, e[0]); !well[e[0]] {
			suspects = append(suspects, e[0])
		}
		lower = append(lower, fmt.Sprintf("ip link set %s mtu %d", e[1], n.passes))
	}
	for _, names := range []*[]string{&ends, &suspects, &lower, &n.paths} { // paths of both families of addresses are told once
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	says, where := "nothing on the way says so", ""
	f := Finding{Subject: fmt.Sprintf("MTU %d of %d", n.passes, n.full)}
	if n.told {
		says, f.Severity = "a router on the way says so", Slows
		f.Consequence = "TCP hears it and sends smaller packets, slower; RDMA does not, and packets of path MTU 4096 vanish on the way"
	}
	if len(suspects) > 0 && len(suspects) < len(ends) {
		says += fmt.Sprintf("; every probed path of %s is so", few(suspects))
		where = ", first the port of " + few(suspects)
	}
	f.Evidence = fmt.Sprintf("packets of %d bytes are lost, and at most pass: %s; %s", n.full, few(n.paths), says)
	return f.mend("give switches and tunnels on the way an MTU of %d and what their headers add (9216 is usual)%s; else lower it at all ends: %s", n.full, where, strings.Join(lower, "; "))
}
