package doctor

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/internal/doctor/probe"
	"weft/internal/report"
)

// Path leads from an address of one host to one of another; a probe has found what passes.
type Path struct {
	From     string `json:"from" doc:"the network device that it leaves by"`
	Address  string `json:"address" doc:"of that"`
	MTU      int64  `json:"mtu" doc:"of that, in bytes"`
	Host     string `json:"host" doc:"the other host"`
	To       string `json:"to" doc:"its network device"`
	Answers  string `json:"answers" doc:"its address, and the port where it answered"`
	PeerMTU  int64  `json:"peer_mtu" doc:"of its network device, in bytes"`
	Routed   bool   `json:"routed,omitempty" doc:"the addresses are of two subnets"`
	Passes   int64  `json:"passes,omitempty" doc:"the largest packet that passes; the lesser of both MTUs where all is well; absent: not known"`
	Told     bool   `json:"told,omitempty" doc:"a router on the way says so of larger ones; else they are lost without a word"`
	Unprobed string `json:"unprobed,omitempty" doc:"why it is not known"`
}

func (p Path) name(from string) string {
	return fmt.Sprintf("%s %s -> %s %s", from, p.From, p.Host, p.To)
}

// full is the largest packet that both ends take.
func (p Path) full() int64 { return min(p.MTU, p.PeerMTU) }

// end is an address of a host that carries data.
type end struct {
	host int
	i    Interface
	at   netip.Prefix
}

// ends are the addresses of the interfaces that TCP or RDMA use, one of each family of each.
func (h Host) ends() (all []end) {
	for _, i := range h.Interfaces {
		used := i.Used || slices.ContainsFunc(h.Devices, func(d Device) bool { return d.Used && d.NetDev == i.Name })
		if !used || !i.Up {
			continue
		}
		of := map[bool]bool{}
		for _, text := range i.Addresses {
			a, err := netip.ParsePrefix(text)
			if err != nil || a.Addr().IsLoopback() || a.Addr().IsLinkLocalUnicast() || of[a.Addr().Is4()] {
				continue
			}
			of[a.Addr().Is4()] = true
			all = append(all, end{i: i, at: a})
		}
	}
	return all
}

// Answer has this host answer probes until the end of what it returns.
func (h *Host) Answer() *probe.Answerer {
	a := &probe.Answerer{}
	for _, e := range h.ends() {
		if at, err := a.Open(e.i.Name, e.at.Addr()); err == nil { // else others find nobody here, and say so
			h.Answers = append(h.Answers, at.String())
		}
	}
	return a
}

// Paths are those to probe from each host. Each end of a subnet probes the next one, the one before and one half around: then a port of
// a switch is passed both ways, and so are most links between switches, by three probes for each port. The first ends of subnets do so
// among each other, for each name of an interface: what joins them may be a router.
func Paths(hosts []Host) [][]Path {
	all, at := make([][]Path, len(hosts)), map[netip.Addr]string{}
	subnets, rails := map[netip.Prefix][]end{}, map[string][]end{}
	for n, h := range hosts {
		here := map[netip.Addr]string{}
		for _, text := range h.Answers {
			if a, err := netip.ParseAddrPort(text); err == nil && at[a.Addr()] == "" { // an address of two hosts is told by another rule
				here[a.Addr()], at[a.Addr()] = text, text
			}
		}
		for _, e := range h.ends() {
			if here[e.at.Addr()] == "" {
				continue
			}
			e.host = n
			net := e.at.Masked()
			if subnets[net] == nil {
				rail := fmt.Sprint(e.i.Name, e.at.Addr().Is4())
				rails[rail] = append(rails[rail], e)
			}
			subnets[net] = append(subnets[net], e)
		}
	}
	add := func(a, b end) {
		all[a.host] = append(all[a.host], Path{
			From: a.i.Name, Address: a.at.Addr().String(), MTU: a.i.MTU,
			Host: hosts[b.host].Name, To: b.i.Name, Answers: at[b.at.Addr()], PeerMTU: b.i.MTU, Routed: a.at.Masked() != b.at.Masked(),
		})
	}
	for _, net := range sortedNets(subnets) {
		slices.SortStableFunc(subnets[net], func(a, b end) int { return strings.Compare(a.i.Name, b.i.Name) })
		ring(subnets[net], add)
	}
	for _, rail := range slices.Sorted(maps.Keys(rails)) {
		ring(rails[rail], add)
	}
	return all
}

// ring calls f for each end and those of other hosts that are next to it, before it and half around.
func ring(ends []end, f func(a, b end)) {
	n := len(ends)
	for k, a := range ends {
		var done []int
		for _, step := range []struct{ first, by int }{{k + 1, 1}, {k + n - 1, n - 1}, {k + n/2, 1}} {
			for at := step.first; at < step.first+n*step.by; at += step.by {
				if b := ends[at%n]; b.host != a.host {
					if !slices.Contains(done, at%n) {
						done = append(done, at%n)
						f(a, b)
					}
					break
				}
			}
		}
	}
}

// ProbeLimit is how long probes of paths take at most.
const ProbeLimit = 2 * time.Second

// Probe finds out what passes along paths from this host, all at once.
func Probe(ctx context.Context, paths []Path) {
	ctx, cancel := context.WithTimeout(ctx, ProbeLimit)
	defer cancel()
	var wg sync.WaitGroup
	for i := range paths {
		p := &paths[i]
		wg.Go(func() {
			if err := p.probe(ctx); err != nil {
				p.Unprobed = err.Error()
			}
		})
	}
	wg.Wait()
}

func (p *Path) probe(ctx context.Context) error {
	from, err := netip.ParseAddr(p.Address)
	if err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(p.Answers)
	if err != nil {
		return err
	}
	const most = 65_535 // which a packet's length has room for
	passes, told, err := probe.Largest(ctx, p.From, from, to, int(min(p.full(), most)))
	if err != nil {
		return fmt.Errorf("probe from %s to %s: %w", from, to, err)
	}
	if p.Passes, p.Told = int64(passes), told; passes == most {
		p.Passes = p.full()
	}
	return nil
}

// printPaths says how many paths carry what their ends take, and which are not known. Of two subnets nobody knows whether they are meant
// to be joined.
func (r Report) printPaths(w io.Writer) {
	probed, whole := 0, 0
	var unknown []string
	for _, h := range r.Hosts {
		for _, p := range h.Paths {
			switch {
			case p.Unprobed == "":
				if probed++; p.Passes >= p.full() {
					whole++
				}
			case !p.Routed:
				unknown = append(unknown, fmt.Sprintf("%s: %s", p.name(h.Name), p.Unprobed))
			}
		}
	}
	if probed > 0 {
		fmt.Fprintf(w, "paths: %d of %d carry packets of their ends' MTU\n", whole, probed)
	}
	if n := len(unknown); n > 0 {
		const most = 4
		fmt.Fprintf(w, "not probed: %d path%s; a firewall may drop UDP, and what passes is not known:\n", n, report.Plural(n))
		for _, u := range unknown[:min(n, most)] {
			fmt.Fprintf(w, "  %s\n", u)
		}
		if n > most {
			fmt.Fprintf(w, "  and %d more (--json has all)\n", n-most)
		}
	}
}
