package doctor

import (
	"fmt"
	"strings"
	"testing"
)

// answering are n hosts with ports in subnets that address gives, which would answer.
func answering(n, ports int, address func(host, port int) string) (all []Host) {
	for host := range n {
		h := Host{Name: fmt.Sprintf("node%d", host)}
		for port := range ports {
			a := address(host, port)
			h.Interfaces = append(h.Interfaces, Interface{Name: fmt.Sprintf("eth%d", port), Addresses: []string{a + "/24"}, Up: true, MTU: 9000, Used: true})
			h.Answers = append(h.Answers, a+":4711")
		}
		all = append(all, h)
	}
	return all
}

// Every port is passed both ways, by other hosts, with few probes; what answers nowhere is left out.
func TestPathsPassEachPort(t *testing.T) {
	for name, c := range map[string]struct {
		hosts   []Host
		most    int // from one port
		without string
	}{
		"two":     {answering(2, 2, func(h, p int) string { return fmt.Sprintf("10.0.%d.%d", p, h+1) }), 1, ""},
		"many":    {answering(64, 2, func(h, p int) string { return fmt.Sprintf("10.0.%d.%d", p, h+1) }), 3, ""},
		"routed":  {answering(5, 2, func(h, p int) string { return fmt.Sprintf("10.%d.%d.1", h, p) }), 3, ""},
		"a net":   {answering(3, 2, func(h, p int) string { return fmt.Sprintf("10.0.0.%d", 10*p+h+1) }), 3, ""},
		"racks":   {answering(6, 1, func(h, p int) string { return fmt.Sprintf("10.0.%d.%d", h/3, h+1) }), 3, ""},
		"a clone": {answering(4, 1, func(h, p int) string { return fmt.Sprintf("10.0.0.%d", min(h, 2)+1) }), 2, "node3"},
		"itself":  {answering(2, 1, func(h, p int) string { return "10.0.0.1" }), 0, "node0 node1"},
	} {
		sends, receives, between := map[string]int{}, map[string]int{}, map[bool]bool{}
		for n, paths := range Paths(c.hosts) {
			for _, p := range paths {
				if p.Host == c.hosts[n].Name || p.Passes != 0 || p.full() != 9000 {
					t.Errorf("%s: %s has %+v", name, c.hosts[n].Name, p)
				}
				sends[c.hosts[n].Name+p.From]++
				receives[p.Host+p.To]++
				between[p.Routed] = true
			}
		}
		for _, h := range c.hosts {
			for _, i := range h.Interfaces {
				at := h.Name + i.Name
				if left := strings.Contains(c.without, h.Name); left != (sends[at] == 0) || left != (receives[at] == 0) || !between[true] && sends[at] > c.most {
					t.Errorf("%s: %s sends %d and receives %d", name, at, sends[at], receives[at])
				}
			}
		}
		if between[true] != (name == "routed" || name == "racks") {
			t.Errorf("%s: routed %v", name, between)
		}
	}
}

// Interfaces that carry no data between hosts answer nothing, and what cannot be probed says why.
func TestProbe(t *testing.T) {
	h := Host{Interfaces: []Interface{
		{Name: "lo", Addresses: []string{"127.0.0.1/8", "::1/128"}, Up: true, Used: true}, {Name: "eth0", Addresses: []string{"10.0.0.1/24"}, Up: true}, {Name: "eth1", Addresses: []string{"fe80::1/64"}, Up: true, Used: true},
	}}
	if h.Answer().Close(); len(h.Answers) > 0 {
		t.Errorf("%v answer", h.Answers)
	}
	paths := []Path{{From: "lo", Address: "127.0.0.1", MTU: 9000, Answers: "127.0.0.1:9", PeerMTU: 9000}, {From: "lo", Address: "what", Answers: "127.0.0.1:9"}}
	Probe(t.Context(), paths)
	for _, p := range paths {
		if p.Unprobed == "" || p.Passes != 0 {
			t.Errorf("%+v", p)
		}
	}
}
