package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
)

const netTopic = "Interfaces and TCP"

// interfaceRules: the interfaces of TCP, over which every connection is set up.
var interfaceRules = []Rule{
	{
		Code: "WEFT-100", Topic: netTopic, Severity: Breaks,
		Title:       "NCCL_SOCKET_IFNAME takes no interface that is there",
		Symptom:     "`Bootstrap : no socket interface found`",
		Consequence: "NCCL cannot start",
		check: func(x *Exam) []Finding {
			s := x.set("NCCL_SOCKET_IFNAME")
			if all, _ := x.sockets(); len(s.Value) < 2 || len(all) > 0 || len(x.NICs()) == 0 {
				return nil
			}
			return seen("NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME=%s (%s); there is %s", s.Value, s.From, nicNames(x.NICs())).with("NCCL_SOCKET_IFNAME", "").mend("%s", s.Undo).one()
		},
	},
	{
		Code: "WEFT-101", Topic: netTopic, Severity: Breaks,
		Title:       "an interface of containers or virtual machines is used",
		Symptom:     "`connect to 172.17.0.1 ... Connection refused` or timeouts between hosts",
		Consequence: "its address means another machine, or nothing, on the other host: connections fail or go astray",
		check: func(x *Exam) []Finding {
			all, why := x.sockets()
			var inner, outer []string
			for _, n := range all {
				if inside(n) {
					inner = append(inner, n.Name)
				} else {
					outer = append(outer, n.Name)
				}
			}
			if inner == nil || outer == nil && !slices.ContainsFunc(x.NICs(), func(n *machine.NIC) bool { return !n.Virtual }) {
				return nil
			}
			f := seen(inner[0], "TCP uses %s (%s); of these %s is made by software", nicNames(all), why, strings.Join(inner, ", "))
			if outer == nil {
				return f.mend("export NCCL_SOCKET_IFNAME='=NAME' with the interface that the other hosts reach").one()
			}
			return f.export("NCCL_SOCKET_IFNAME", "="+strings.Join(outer, ",")).one()
		},
	},
	{
		Code: "WEFT-102", Topic: netTopic, Severity: Breaks,
		Title:       "no interface but loopback has an address",
		Symptom:     "`Bootstrap : no socket interface found`, or ranks of other hosts time out",
		Consequence: "no other host reaches this one",
		Remedy:      "ip link set NAME up; ip addr add ADDRESS/BITS dev NAME",
		check: func(x *Exam) []Finding {
			if x.set("NCCL_SOCKET_IFNAME").Value != "" {
				return nil
			}
			for _, n := range x.NICs() {
				for _, a := range n.Addrs {
					if n.Up && n.Name != "lo" && !a.Addr().IsLinkLocalUnicast() {
						return nil
					}
				}
			}
			return seen("", "interfaces: %s", nicNames(x.NICs())).one()
		},
	},
	{
		Code: "WEFT-103", Topic: netTopic, Severity: Advice,
		Title:       "the host's own name means the loopback address",
		Symptom:     "`connect to 127.0.1.1 ... Connection refused` on other hosts; gloo and torchrun hang",
		Consequence: "what tells others its address by its name (MASTER_ADDR, gloo, NCCL_COMM_ID) tells them their own",
		check: func(x *Exam) (all []Finding) {
			name := x.Sysctl("kernel/hostname")
			for _, line := range x.Lines("/etc/hosts") {
				line, _, _ = strings.Cut(line, "#")
				f := strings.Fields(line)
				if len(f) < 2 || name == "" || !slices.Contains(f[1:], name) || !several(x) {
					continue
				}
				if a, err := netip.ParseAddr(f[0]); err == nil && a.IsLoopback() {
					all = append(all, seen("/etc/hosts", "/etc/hosts: %s", strings.TrimSpace(line)).
						mend("write the address that others reach instead of %s into /etc/hosts, or set MASTER_ADDR to an address", f[0]))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-104", Topic: netTopic, Severity: Slows,
		Title:       "interfaces of very different speed carry TCP together",
		Symptom:     "TCP bandwidth of the management network, though a fast one is there",
		Consequence: "NCCL shares traffic out among them as if they were equally fast",
		check: func(x *Exam) []Finding {
			all, why := x.sockets()
			fastest := int64(0)
			for _, n := range all {
				fastest = max(fastest, n.Mbps)
			}
			var said, keep []string
			slow := false
			for _, n := range all {
				if n.Mbps == 0 {
					continue
				}
				said = append(said, fmt.Sprintf("%s %d Mb/s", n.Name, n.Mbps))
				if n.Mbps*4 < fastest {
					slow = true
				} else {
					keep = append(keep, n.Name)
				}
			}
			if !slow || len(x.used()) > 0 {
				return nil // over RDMA, TCP carries what sets connections up
			}
			return seen("NCCL_SOCKET_IFNAME", "%s (%s)", strings.Join(said, ", "), why).export("NCCL_SOCKET_IFNAME", "="+strings.Join(keep, ",")).one()
		},
	},
	{
		Code: "WEFT-105", Topic: netTopic, Severity: Breaks,
		Title:       "NCCL_SOCKET_FAMILY asks for addresses that no interface has",
		Symptom:     "`Bootstrap : no socket interface found`",
		Consequence: "NCCL cannot start",
		check: func(x *Exam) []Finding {
			family := x.knobs.Text(knob.SocketFamily)
			if family == "" || slices.ContainsFunc(x.Addresses(), func(a machine.Address) bool {
				return a.Addr().Is6() == (family == "AF_INET6") && !a.Addr().IsLoopback()
			}) {
				return nil
			}
			s := x.set("NCCL_SOCKET_FAMILY")
			return seen("NCCL_SOCKET_FAMILY", "NCCL_SOCKET_FAMILY=%s (%s)", s.Value, s.From).with("NCCL_SOCKET_FAMILY", "").mend("%s", s.Undo).one()
		},
	},
}

// inside reports an interface that only containers or virtual machines of this host use.
func inside(n *machine.NIC) bool {
	if n.Kind == "bridge" && n.PCI == nil || n.Kind == "tun" {
		return true
	}
	return n.Kind == "veth" || slices.ContainsFunc([]string{"docker", "virbr", "br-", "cni", "flannel", "cali", "cilium", "kube", "lxc", "lxdbr", "podman", "vmnet", "tailscale", "wg"},
		func(p string) bool { return n.Virtual && strings.HasPrefix(n.Name, p) })
}

// several reports a machine with a way to others: alone, its name may mean itself.
func several(x *Exam) bool {
	all, _ := x.sockets()
	return slices.ContainsFunc(all, func(n *machine.NIC) bool { return n.Name != "lo" })
}
