package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
)

// subnetRules: several interfaces, and which of them answers for an address.
var subnetRules = []Rule{
	{
		Code: "WEFT-110", Topic: netTopic, Severity: Slows,
		Title:       "two interfaces lie in one subnet, and each answers ARP for the other",
		Symptom:     "one card carries the traffic of both; RDMA between some pairs fails with status 12",
		Consequence: "peers learn the wrong card's MAC address for an address (ARP flux): half of the cards stand idle, or packets are dropped",
		check: func(x *Exam) (all []Finding) {
			for _, s := range x.shared() {
				var lax []string
				for _, dev := range s.devs {
					if x.ipv4conf("arp_ignore", dev) < 1 || x.ipv4conf("arp_announce", dev) < 2 {
						lax = append(lax, dev)
					}
				}
				if lax != nil {
					all = append(all, seen(s.subnet.String(), "%s are in %v; %s: arp_ignore %d, arp_announce %d", strings.Join(s.devs, ", "), s.subnet, lax[0],
						x.ipv4conf("arp_ignore", lax[0]), x.ipv4conf("arp_announce", lax[0])).
						mend("sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2; better: a subnet for each"))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-111", Topic: netTopic, Severity: Breaks,
		Title:       "reverse path filtering drops what comes in by the second of two interfaces",
		Symptom:     "`connect timed out` to one of the host's addresses; ping -I works one way only",
		Consequence: "the kernel would answer by the first interface of the subnet, and so drops what arrives by the other",
		check: func(x *Exam) (all []Finding) {
			for _, s := range x.shared() {
				var strict []string
				for _, dev := range s.devs {
					if x.ipv4conf("rp_filter", dev) == 1 {
						strict = append(strict, dev)
					}
				}
				if strict != nil {
					all = append(all, seen(s.subnet.String(), "%s are in %v; rp_filter is 1 of %s", strings.Join(s.devs, ", "), s.subnet, strings.Join(strict, ", ")).
						mend("sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.%s.rp_filter=2; better: a subnet for each", strings.Join(strict, ".rp_filter=2 net.ipv4.conf.")))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-112", Topic: netTopic, Severity: Breaks,
		Title:       "two interfaces have one address",
		Symptom:     "connections reach now this card, now that; RDMA fails with status 12",
		Consequence: "nobody knows which card the address means",
		check: func(x *Exam) (all []Finding) {
			of := map[netip.Addr]string{}
			for _, a := range x.Addresses() {
				first, twice := of[a.Addr()]
				if !twice {
					of[a.Addr()] = a.Dev
				} else if first != a.Dev && !a.Addr().IsLinkLocalUnicast() && !a.Addr().IsLoopback() {
					all = append(all, seen(a.Addr().String(), "%v is an address of %s and of %s", a.Addr(), first, a.Dev).
						mend("ip addr del %v dev %s, and give it one of its own", a.Prefix, a.Dev))
				}
			}
			return all
		},
	},
}

// sharing is a subnet of IPv4 in which several interfaces lie.
type sharing struct {
	subnet netip.Prefix
	devs   []string
}

func (x *Exam) shared() (all []sharing) {
	for _, a := range x.Addresses() {
		n := x.NIC(a.Dev)
		if !a.Addr().Is4() || a.Addr().IsLoopback() || a.Addr().IsLinkLocalUnicast() || a.Bits() == 32 || n == nil || !n.Up || inside(n) {
			continue
		}
		at := slices.IndexFunc(all, func(s sharing) bool { return s.subnet == a.Masked() })
		if at < 0 {
			all = append(all, sharing{subnet: a.Masked()})
			at = len(all) - 1
		}
		if !slices.Contains(all[at].devs, a.Dev) {
			all[at].devs = append(all[at].devs, a.Dev)
		}
	}
	return slices.DeleteFunc(all, func(s sharing) bool { return len(s.devs) < 2 })
}

// ipv4conf is a setting of an interface as the kernel takes it: the higher of its own and that of all.
func (x *Exam) ipv4conf(name, dev string) int64 {
	of := func(which string) int64 {
		n, _ := x.Int("/proc/sys/net/ipv4/conf", which, name) // what is not told is 0, the kernel's default
		return n
	}
	return max(of("all"), of(dev))
}

// firewallRules: what may keep connections out.
var firewallRules = []Rule{
	{
		Code: "WEFT-115", Topic: netTopic, Severity: Breaks,
		Title:       "a firewall is on",
		Symptom:     "`connect timed out`, `No route to host` between hosts that answer ping",
		Consequence: "NCCL and weft listen on ports that the kernel chooses: the firewall drops what comes from other hosts",
		check: func(x *Exam) []Finding {
			open := "allow the job's subnet"
			if s := x.set("WEFT_PORT_RANGE"); s.Value != "" {
				open = "allow the ports " + s.Value + " of WEFT_PORT_RANGE"
			}
			switch {
			case strings.Contains(x.Text("/etc/ufw/ufw.conf"), "ENABLED=yes"):
				return seen("ufw", "/etc/ufw/ufw.conf: ENABLED=yes").mend("%s: ufw allow from SUBNET", open).one()
			case x.Exists("/run/firewalld.pid") || x.Exists("/run/firewalld/firewalld.pid") || x.Exists("/var/run/firewalld.pid"):
				return seen("firewalld", "firewalld runs").mend("%s: firewall-cmd --permanent --zone=trusted --add-source=SUBNET && firewall-cmd --reload", open).one()
			}
			return nil
		},
	},
	{
		Code: "WEFT-116", Topic: netTopic, Severity: Advice,
		Title:       "the kernel filters packets",
		Symptom:     "`connect timed out` between hosts that answer ping; many connections at once fail",
		Consequence: "rules, which only root can list, may drop connections; each one is tracked, up to nf_conntrack_max",
		Remedy:      "iptables -S; nft list ruleset: look for DROP and REJECT",
		check: func(x *Exam) []Finding {
			tables := strings.Fields(x.Text("/proc/net/ip_tables_names"))
			limit, _ := x.Int("/proc/sys/net/netfilter/nf_conntrack_max")
			count, _ := x.Int("/proc/sys/net/netfilter/nf_conntrack_count")
			full := limit > 0 && count*10 > limit*9
			if !slices.Contains(tables, "filter") && !full {
				return nil
			}
			return seen("netfilter", "%s", fmt.Sprintf("/proc/net/ip_tables_names: %s; connections tracked: %d of %d", strings.Join(tables, " "), count, limit)).one()
		},
	},
}

// bondRules: interfaces made of several.
var bondRules = []Rule{
	{
		Code: "WEFT-120", Topic: netTopic, Severity: Slows,
		Title:       "a bond has a member that is down",
		Symptom:     "half of the bandwidth over a bond",
		Consequence: "the other members carry all",
		check: func(x *Exam) (all []Finding) {
			for _, n := range x.NICs() {
				if n.Kind != "bond" {
					continue
				}
				for _, member := range strings.Fields(x.Text(n.Path, "bonding/slaves")) {
					if s := x.NIC(member); s == nil || !s.Up {
						all = append(all, seen(n.Name, "%s, a member of %s, is down", member, n.Name).mend("ip link set %s up; look at its cable", member))
					}
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-121", Topic: netTopic, Severity: Slows,
		Title:       "a bond sends everything to one host by one member",
		Symptom:     "a bond of two is as fast as one",
		Consequence: "the hash looks at MAC addresses only: all connections to a host take the same cable",
		check: func(x *Exam) (all []Finding) {
			for _, n := range x.NICs() {
				mode, _, _ := strings.Cut(x.Text(n.Path, "bonding/mode"), " ")
				policy, _, _ := strings.Cut(x.Text(n.Path, "bonding/xmit_hash_policy"), " ")
				if n.Kind == "bond" && (mode == "802.3ad" || mode == "balance-xor") && policy == "layer2" && balanced(x, n) {
					all = append(all, seen(n.Name, "%s: mode %s, xmit_hash_policy %s", n.Name, mode, policy).
						mend("ip link set %s type bond xmit_hash_policy layer3+4, and NCCL_IB_QPS_PER_CONNECTION=4 over RDMA", n.Name))
				}
			}
			return all
		},
	},
}

// balanced reports a bond with more than one member.
func balanced(x *Exam, n *machine.NIC) bool {
	return len(strings.Fields(x.Text(n.Path, "bonding/slaves"))) > 1
}
