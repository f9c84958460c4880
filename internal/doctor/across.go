package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// acrossRules are about several hosts of one job. They see what the hosts' reports say.
var acrossRules = []Rule{
	{
		Code: "WEFT-160", Topic: "Across hosts", Severity: Breaks, Title: "hosts have different versions of weft",
		Symptom:     "connections between some hosts are refused as of another version, or lack what the older side does not know",
		Consequence: "two versions talk only as far as both know",
		Remedy:      "install one version on all hosts", across: func(hosts []Host) []Finding { return differs(hosts, "weft", func(h Host) string { return h.Weft }) },
	},
	{
		Code: "WEFT-161", Topic: "Across hosts", Severity: Breaks, Title: "hosts have different versions of NCCL",
		Symptom:     "a job hangs or fails in ncclCommInitRank with a mismatch of versions",
		Consequence: "NCCL's ranks must be of one version",
		Remedy:      "install one version on all hosts, or have all jobs bring their own", across: func(hosts []Host) []Finding {
			groups := by(hosts, Host.loadersNCCL)
			delete(groups, "") // a job may bring its own, and a file's name need not tell
			return unlike("NCCL that the loader finds", groups)
		},
	},
	{
		Code: "WEFT-162", Topic: "Across hosts", Severity: Slows, Title: "a variable differs between hosts",
		Symptom:     "some hosts use other devices, GIDs, queue pairs or timeouts than the rest",
		Consequence: "both ends of a connection agree on what the lesser of them has, or do not agree",
		Remedy:      "set it alike in every host's environment or nccl.conf", across: variables,
	},
	{
		Code: "WEFT-163", Topic: "Across hosts", Severity: Breaks, Title: "two hosts have one address",
		Symptom:     "connections reach the wrong host, are refused as of a stranger, or come and go",
		Consequence: "what is sent to the address reaches whichever host answered ARP last",
		Remedy:      "give one of them another address", across: sameAddress,
	},
	{
		Code: "WEFT-164", Topic: "Across hosts", Severity: Breaks, Title: "two hosts have one GID",
		Symptom:     "RDMA connections between other hosts and these fail or reach the wrong one",
		Consequence: "a GID names one port; cards that were cloned, or virtual functions without a GUID of their own, share one",
		Remedy:      "give one of the cards another GUID, or its interface another address", across: func(hosts []Host) []Finding { return twice(hosts, gidOf) },
	},
	{
		Code: "WEFT-165", Topic: "Across hosts", Severity: Slows, Title: "the MTU differs within a subnet",
		Symptom:     "small messages pass and large ones do not, or all of them take the smaller MTU",
		Consequence: "packets larger than the smaller MTU are dropped on the way to it",
		Remedy:      "set one MTU on all interfaces of the subnet, and at least that on its switches", across: mtuOfSubnets,
	},
	{
		Code: "WEFT-166", Topic: "Across hosts", Severity: Slows, Title: "a port is slower than the same port of other hosts",
		Symptom:     "collectives run at the speed of this port on all hosts",
		Consequence: "a ring is as fast as its slowest link",
		Remedy:      "look at the cable and at what the ports of the switch negotiate: ethtool, mlxlink", across: slowPorts,
	},
	{
		Code: "WEFT-167", Topic: "Across hosts", Severity: Slows, Title: "hosts use different numbers of RDMA ports",
		Symptom:     "rails are missing: NCCL pairs ports of one number, and some have no partner",
		Consequence: "connections of this host share fewer ports than those of the others",
		Remedy:      "weft doctor on the host with fewer says why each port is not used", across: portCounts,
	},
	{
		Code: "WEFT-168", Topic: "Across hosts", Severity: Slows, Title: "a port's subnet has no other host",
		Symptom:     "weft says that no pair of ports reaches each other, and goes over TCP or another port",
		Consequence: "the port reaches none of these hosts unless a router joins the subnets",
		Remedy:      "look where the cable of the port leads, and at the addresses of both its ends", across: lonelySubnets,
	},
	{
		Code: "WEFT-169", Topic: "Across hosts", Severity: Breaks, Title: "cards of two hosts have one GUID",
		Symptom:     "an InfiniBand port has no LID, or packets for it reach another host",
		Consequence: "a subnet manager takes the cards for one; GIDs that are made of GUIDs are the same",
		Remedy:      "give one another: mstflint -d PCI -guid GUID sg and a reset, or for virtual function N: echo GUID > /sys/class/infiniband/DEVICE/device/sriov/N/node", across: func(hosts []Host) []Finding { return twice(hosts, guidOf) },
	},
	pathRule,
}

// Across applies the rules that are about several hosts.
func Across(hosts []Host) []Finding {
	all := []Finding{}
	if len(hosts) < 2 {
		return all
	}
	for _, r := range acrossRules {
		for _, f := range r.across(hosts) {
			f.Code, f.Title = r.Code, r.Title
			f.Severity, f.Consequence = cmp.Or(f.Severity, r.Severity), cmp.Or(f.Consequence, r.Consequence)
			if f.Remedy == "" {
				f.Remedy = r.Remedy
			}
			all = append(all, f)
		}
	}
	return all
}

// by groups the hosts' names by something of them.
func by(hosts []Host, of func(Host) string) map[string][]string {
	all := map[string][]string{}
	for _, h := range hosts {
		all[of(h)] = append(all[of(h)], h.Name)
	}
	return all
}

// few names at most so many hosts.
func few(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// grouped is "1.0: node0, node1; 1.1: node2", the largest group first.
func grouped(groups map[string][]string) string {
	var parts []string
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		if d := len(groups[b]) - len(groups[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		name := k
		if name == "" {
			name = "none"
		}
		parts = append(parts, name+": "+few(groups[k]))
	}
	return strings.Join(parts, "; ")
}

// differs is a finding where something is not alike on all hosts.
func differs(hosts []Host, what string, of func(Host) string) []Finding {
	return unlike(what, by(hosts, of))
}

func unlike(what string, groups map[string][]string) []Finding {
	if len(groups) > 1 {
		return seen(what, "%s", grouped(groups)).one()
	}
	return nil
}

// loadersNCCL is the version of the library that a program would load; "" where it is not told.
func (h Host) loadersNCCL() string {
	for _, n := range h.NCCL {
		if n.Owner == "the loader" && strings.Contains(n.Path, "libnccl") {
			return n.Version
		}
	}
	return ""
}

// variables are those of NCCL's network and of weft that are not alike.
func variables(hosts []Host) (found []Finding) {
	names := map[string]bool{}
	for _, h := range hosts {
		for name := range h.Settings {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasSuffix(name, "_HOSTID") { // is to differ
			continue
		}
		found = append(found, differs(hosts, name, func(h Host) string { return h.Settings[name] })...)
	}
	return found
}

// virtual are kinds of interfaces whose addresses other hosts may have too: of containers, and anycast ones.
var virtual = map[string]bool{"bridge": true, "veth": true, "tun": true, "dummy": true}

// addressed calls f for each address of an interface that is up, but for loopback and what only lives on one link or one host.
func addressed(h Host, f func(i Interface, a netip.Prefix)) {
	for _, i := range h.Interfaces {
		for _, text := range i.Addresses {
			a, err := netip.ParsePrefix(text)
			if err != nil || !i.Up || a.Addr().IsLoopback() || a.Addr().IsLinkLocalUnicast() || i.Name == "lo" || virtual[i.Kind] {
				continue
			}
			f(i, a)
		}
	}
}

func sameAddress(hosts []Host) (found []Finding) {
	at, owners := map[netip.Addr][]string{}, map[netip.Addr]map[string]bool{}
	for _, h := range hosts {
		addressed(h, func(i Interface, a netip.Prefix) {
			if owners[a.Addr()] == nil {
				owners[a.Addr()] = map[string]bool{}
			}
			at[a.Addr()], owners[a.Addr()][h.Name] = append(at[a.Addr()], h.Name+" "+i.Name), true
		})
	}
	for _, a := range slices.SortedFunc(maps.Keys(at), netip.Addr.Compare) {
		if len(owners[a]) > 1 {
			found = append(found, seen(a.String(), "%s", few(at[a])))
		}
	}
	return found
}

// gidOf is a port's GID; of one that is made of an IPv4 address, another rule tells.
func gidOf(d Device) string {
	gid, _, _ := strings.Cut(d.GID, " ")
	if a, err := netip.ParseAddr(gid); err == nil && a.Is4() {
		return ""
	}
	return gid
}

// guidOf is a card's GUID; "" where it has none, as some virtual functions.
func guidOf(d Device) string {
	if strings.Trim(d.GUID, "0:") == "" {
		return ""
	}
	return d.GUID
}

// twice finds what ports of several machines have in common and must not. Ports of one card, and a card that containers share, may.
func twice(hosts []Host, of func(Device) string) (found []Finding) {
	at, known := map[string][]string{}, map[[2]string]bool{} // by machine
	for _, h := range hosts {
		for _, d := range h.Devices {
			name := of(d)
			if key := [2]string{cmp.Or(h.Boot, h.Name), name}; name != "" && !known[key] {
				known[key] = true
				at[name] = append(at[name], h.Name+" "+d.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		if len(at[name]) > 1 {
			found = append(found, seen(name, "%s", few(at[name])))
		}
	}
	return found
}

func mtuOfSubnets(hosts []Host) (found []Finding) {
	of := map[netip.Prefix]map[string][]string{}
	for _, h := range hosts {
		addressed(h, func(i Interface, a netip.Prefix) {
			net := a.Masked()
			if of[net] == nil {
				of[net] = map[string][]string{}
			}
			mtu := number(i.MTU)
			of[net][mtu] = append(of[net][mtu], h.Name+" "+i.Name)
		})
	}
	for _, net := range sortedNets(of) {
		if len(of[net]) > 1 {
			found = append(found, seen(net.String(), "%s", grouped(of[net])))
		}
	}
	return found
}

func sortedNets[T any](of map[netip.Prefix]T) []netip.Prefix {
	return slices.SortedFunc(maps.Keys(of), func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
}

func slowPorts(hosts []Host) (found []Finding) {
	speeds := map[string][]float64{}
	for _, h := range hosts {
		for _, d := range h.Devices {
			if d.Used && d.Gbps > 0 {
				speeds[d.Name] = append(speeds[d.Name], d.Gbps)
			}
		}
	}
	for _, h := range hosts {
		for _, d := range h.Devices {
			all := slices.Sorted(slices.Values(speeds[d.Name]))
			if len(all) < 2 || !d.Used || d.Gbps == 0 {
				continue
			}
			if usual := all[len(all)/2]; d.Gbps < usual {
				found = append(found, seen(h.Name+" "+d.Name, "%g Gb/s, where the median of %d hosts is %g", d.Gbps, len(all), usual))
			}
		}
	}
	return found
}

func portCounts(hosts []Host) []Finding {
	return differs(hosts, "RDMA ports in use", func(h Host) string {
		n := 0
		for _, d := range h.Devices {
			if d.Used {
				n++
			}
		}
		return fmt.Sprint(n)
	})
}

// lonelySubnets are RoCE ports that share no subnet with another host, where other ports of their host do.
func lonelySubnets(hosts []Host) (found []Finding) {
	in := map[netip.Prefix]map[string]bool{}
	for _, h := range hosts {
		addressed(h, func(_ Interface, a netip.Prefix) {
			if in[a.Masked()] == nil {
				in[a.Masked()] = map[string]bool{}
			}
			in[a.Masked()][h.Name] = true
		})
	}
	for _, h := range hosts {
		var alone []Finding
		company := 0
		for _, d := range h.Devices {
			var nets []string
			shared := false
			addressed(h, func(i Interface, a netip.Prefix) {
				if d.Used && i.Name == d.NetDev {
					nets, shared = append(nets, a.String()), shared || len(in[a.Masked()]) > 1
				}
			})
			switch {
			case shared:
				company++
			case len(nets) > 0:
				alone = append(alone, seen(h.Name+" "+d.Name, "%s has %s, and none of the %d other hosts has an address in it", d.NetDev, strings.Join(nets, ", "), len(hosts)-1))
			}
		}
		if company >= len(alone) { // else routers join most of them: rails that end at a switch of their own
			found = append(found, alone...)
		}
	}
	return found
}
