package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// someHosts are three alike, each with two RoCE ports in the same two subnets.
func someHosts() (all []Host) {
	for n := range 3 {
		h := Host{Name: fmt.Sprintf("node%d", n), Weft: "weft 1.0.0", NCCL: []NCCL{{"/usr/lib/libnccl.so.2", "2.27.7", "the loader"}}, Settings: map[string]string{"NCCL_IB_TC": "106", "NCCL_HOSTID": fmt.Sprint(n)}}
		for p := range 2 {
			name := fmt.Sprintf("eth%d", p)
			address := fmt.Sprintf("10.0.%d.%d", p, n+1)
			h.Interfaces = append(h.Interfaces, Interface{Name: name, Addresses: []string{address + "/24", "fe80::1/64"}, Up: true, MTU: 9000})
			h.Devices = append(h.Devices, Device{Name: fmt.Sprintf("mlx5_%d:1", p), GUID: fmt.Sprintf("a088:c203:00f0:00%d%d", n, p), State: "ACTIVE", Gbps: 200, NetDev: name, MTU: 9000, Used: true, GID: address + " (index 3)"})
		}
		h.Interfaces = append(h.Interfaces, Interface{Name: "docker0", Addresses: []string{"172.17.0.1/16"}, Up: true, MTU: 1500, Kind: "bridge"}, Interface{Name: "lo", Addresses: []string{"127.0.0.1/8"}, Up: true, MTU: 65536})
		all = append(all, h)
	}
	return all
}

// Each rule finds what is wrong between hosts, and no other does; hosts that are alike are well.
func TestAcross(t *testing.T) {
	if found := Across(someHosts()); len(found) > 0 {
		t.Errorf("hosts that are alike: %+v", found)
	}
	tried := map[string]bool{}
	for _, c := range []struct {
		code, subject, evidence string
		change                  func(h []Host)
	}{
		{"WEFT-160", "weft", "weft 1.0.0: node0, node1; weft 1.1.0: node2", func(h []Host) { h[2].Weft = "weft 1.1.0" }},
		{"WEFT-161", "NCCL", "2.27.7: node0, node2; 2.26.2: node1", func(h []Host) { h[1].NCCL[0].Version = "2.26.2" }},
		{"WEFT-162", "NCCL_IB_TC", "106: node1, node2; none: node0", func(h []Host) { delete(h[0].Settings, "NCCL_IB_TC") }},
		{"WEFT-163", "10.0.0.1", "node0 eth0, node1 eth0", func(h []Host) { h[1].Interfaces[0].Addresses[0] = "10.0.0.1/24" }},
		{"WEFT-164", "fe80::7", "node0 mlx5_0:1, node2 mlx5_1:1", func(h []Host) { h[0].Devices[0].GID, h[2].Devices[1].GID = "fe80::7 (index 0)", "fe80::7 (index 0)" }},
		{"WEFT-165", "10.0.1.0/24", "9000: node0 eth1, node1 eth1; 1500: node2 eth1", func(h []Host) { h[2].Interfaces[1].MTU = 1500 }},
		{"WEFT-166", "node1 mlx5_0:1", "100 Gb/s, where the median of 3 hosts is 200", func(h []Host) { h[1].Devices[0].Gbps = 100 }},
		{"WEFT-167", "RDMA ports in use", "2: node0, node2; 1: node1", func(h []Host) { h[1].Devices[1].Used = false }},
		{"WEFT-168", "node2 mlx5_1:1", "eth1 has 10.9.9.9/24, and none of the 2 other hosts has an address in it", func(h []Host) { h[2].Interfaces[1].Addresses[0] = "10.9.9.9/24" }},
		{"WEFT-170", "MTU 1500 of 9000", "packets of 9000 bytes are lost, and at most pass: 1500 from node0 eth1 (MTU 9000) to node1 eth1 (MTU 9000), 1504 from node1 eth1 (MTU 9000) to node2 eth1 (MTU 9000); nothing on the way says so; every probed path of node1 eth1 is so", func(h []Host) {
			h[0].Paths = []Path{
				{From: "eth1", MTU: 9000, Host: "node1", To: "eth1", PeerMTU: 9000, Passes: 1500},
				{From: "eth1", MTU: 9000, Host: "node2", To: "eth1", PeerMTU: 9000, Passes: 9000},
				{From: "eth0", MTU: 9000, Host: "node2", To: "eth0", PeerMTU: 9000, Unprobed: "no answer"},
			}
			h[1].Paths = []Path{{From: "eth1", MTU: 9000, Host: "node2", To: "eth1", PeerMTU: 9000, Passes: 1504}, {From: "eth1", MTU: 9000, Host: "node2", To: "eth1", PeerMTU: 9000, Passes: 1504}}
		}},
		{"WEFT-169", "a088:c203:00f0:0010", "node1 mlx5_0:1, node2 mlx5_0:1", func(h []Host) { h[2].Devices[0].GUID = h[1].Devices[0].GUID }},
	} {
		hosts := someHosts()
		c.change(hosts)
		found := Across(hosts)
		if len(found) != 1 || found[0].Code != c.code || !strings.HasPrefix(found[0].Subject, c.subject) || found[0].Evidence != c.evidence || found[0].Remedy == "" || found[0].Consequence == "" {
			t.Errorf("%s: %+v, want %s: %s", c.code, found, c.subject, c.evidence)
		}
		tried[c.code] = true
	}
	for _, r := range acrossRules {
		if !tried[r.Code] {
			t.Errorf("%s is not tried", r.Code)
		}
	}
	if found := Across(someHosts()[:1]); len(found) > 0 {
		t.Errorf("one host: %+v", found)
	}
}

// What hosts may have in common, or for themselves, is no finding.
func TestAcrossPeace(t *testing.T) {
	for name, change := range map[string]func(h []Host){
		"ports of one card": func(h []Host) { h[1].Devices[1].GUID = h[1].Devices[0].GUID },
		"containers that share a card": func(h []Host) {
			h[0].Boot, h[1].Boot = "b", "b"
			h[1].Devices[0].GUID = h[0].Devices[0].GUID
			h[0].Devices[0].GID, h[1].Devices[0].GID = "fe80::7 (index 0)", "fe80::7 (index 0)"
		},
		"virtual functions without a GUID": func(h []Host) {
			for i := range h {
				h[i].Devices[0].GUID = "0000:0000:0000:0000"
			}
		},
		"a host whose jobs bring their NCCL": func(h []Host) { h[1].NCCL = nil },
		"RCCL besides": func(h []Host) {
			h[1].NCCL = append([]NCCL{{"/opt/rocm/lib/librccl.so.1", "2.22.3", "the loader"}}, h[1].NCCL...)
		},
		"an address of its own besides": func(h []Host) { h[0].Interfaces[0].Addresses = append(h[0].Interfaces[0].Addresses, "10.200.0.1/32") },
		"an address on two interfaces":  func(h []Host) { h[0].Interfaces[1].Addresses = append(h[0].Interfaces[1].Addresses, "10.0.0.1/24") },
		"anycast on lo": func(h []Host) {
			for i := range h {
				h[i].Interfaces[3].Addresses = append(h[i].Interfaces[3].Addresses, "192.0.2.1/32")
			}
		},
	} {
		hosts := someHosts()
		change(hosts)
		if found := Across(hosts); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// A router that says what it takes slows what waits for its word, and no finding tells of a path on which nothing came back.
func TestPathsThatAreTold(t *testing.T) {
	hosts := someHosts()
	hosts[0].Paths = []Path{{From: "eth0", MTU: 9000, Host: "node1", To: "eth0", PeerMTU: 4200, Passes: 1500, Told: true}}
	if found := Across(hosts); len(found) != 1 || found[0].Severity != Slows || !strings.Contains(found[0].Evidence, "a router on the way says so") || !strings.Contains(found[0].Remedy, "ip link set eth0 mtu 1500") {
		t.Errorf("%+v", found)
	}
	hosts[0].Paths[0] = Path{From: "eth0", MTU: 9000, Host: "node1", To: "eth0", PeerMTU: 9000, Unprobed: "no answer to packets of 576 bytes"}
	r := NewReport(hosts...)
	var text strings.Builder
	r.PrintAcross(&text)
	if len(r.Across) > 0 || !strings.Contains(text.String(), "not probed: 1 path; a firewall may drop UDP, and what passes is not known:\n  node0 eth0 -> node1 eth0: no answer") {
		t.Errorf("%+v\n%s", r.Across, &text)
	}
}

// Hosts that only routers join have no company in any subnet, and are well.
func TestAcrossRouters(t *testing.T) {
	hosts := someHosts()
	for n := range hosts {
		for p := range 2 {
			hosts[n].Interfaces[p].Addresses[0] = fmt.Sprintf("10.%d.%d.1/24", n, p)
			hosts[n].Devices[p].GID = fmt.Sprintf("10.%d.%d.1 (index 3)", n, p)
		}
	}
	if found := Across(hosts); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// A report of several hosts has the worst of all, and counts who could not be asked.
func TestReportOfHosts(t *testing.T) {
	hosts := someHosts()
	for i := range hosts {
		hosts[i].Verdict = OK
	}
	if r := NewReport(hosts...); r.Verdict != OK || r.Status() != 0 || r.Sentence() != "OK: of 3 hosts 3 are well, 0 slow, 0 broken" {
		t.Errorf("%s, %s", r.Verdict, r.Sentence())
	}
	hosts[1].Devices[0].Gbps = 100
	if r := NewReport(hosts...); r.Verdict != Slows || r.Sentence() != "SLOW: of 3 hosts 3 are well, 0 slow, 0 broken; 1 finding between them" {
		t.Errorf("%s, %s", r.Verdict, r.Sentence())
	}
	if r := NewReport().Missing("node9: no route to host"); r.Status() != 1 || r.Hosts == nil || !strings.Contains(r.Sentence(), "of 1 host ") {
		t.Errorf("%+v", r)
	}
	r := NewReport(hosts...).Missing("node9: no route to host")
	if r.Status() != 1 || !strings.Contains(r.Sentence(), "of 4 hosts 3 are well, 0 slow, 0 broken, 1 not asked") || !slices.Contains(r.Unasked, "node9: no route to host") {
		t.Errorf("%s", r.Sentence())
	}
}
