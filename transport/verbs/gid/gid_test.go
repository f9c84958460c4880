package gid

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"weft/internal/knob"
	"weft/transport/rdma"
)

// gids makes entries from "index version address[/bits]".
func gids(t *testing.T, text string) []GID {
	var all []GID
	for part := range strings.SplitSeq(text, ",") {
		f := strings.Fields(part)
		if len(f) == 0 {
			continue
		}
		var g GID
		if _, err := fmt.Sscan(f[0], &g.Index); err != nil {
			t.Fatal(err)
		}
		g.Type = map[string]rdma.GIDType{"ib": rdma.GIDInfiniBand, "v1": rdma.GIDRoCEv1, "v2": rdma.GIDRoCEv2}[f[1]]
		p, err := netip.ParsePrefix(f[2])
		if err != nil {
			p = netip.PrefixFrom(netip.MustParseAddr(f[2]), 64)
			if p.Addr().Is4() {
				p = netip.PrefixFrom(p.Addr(), 24)
			}
		}
		g.Addr, g.Bits = netip.AddrFrom16(p.Addr().As16()), p.Bits()
		all = append(all, g)
	}
	return all
}

func TestGIDChoice(t *testing.T) {
	const usual = "0 v1 fe80::1, 1 v2 fe80::1, 2 v1 10.0.0.1, 3 v2 10.0.0.1, 4 v1 2001:db8::1, 5 v2 2001:db8::1"
	for _, c := range []struct {
		name, table string
		env         map[string]string
		link        uint8
		want        int    // index; -1: refused
		why         string // part of the reason or of the error
	}{
		{"usual", usual, nil, rdma.LinkEthernet, 3, "the first IPv4 RoCE v2 address of 6"},
		{"rxe", "0 v2 fe80::1, 1 v2 10.9.1.1", nil, rdma.LinkEthernet, 1, "first IPv4"},
		{"v1 wanted", usual, map[string]string{"NCCL_IB_ROCE_VERSION_NUM": "1"}, rdma.LinkEthernet, 2, "RoCE v1"},
		{"v6 wanted", usual, map[string]string{"NCCL_IB_ADDR_FAMILY": "AF_INET6"}, rdma.LinkEthernet, 5, "IPv6 RoCE v2"},
		{"only v6 there", "0 v1 fe80::1, 1 v2 fe80::1, 2 v1 2001:db8::1, 3 v2 2001:db8::1", nil, rdma.LinkEthernet, 3, "no such IPv4 address"},
		{"only v1 there", "0 v1 fe80::1, 1 v1 10.0.0.1", nil, rdma.LinkEthernet, 1, "none for RoCE v2"},
		{"only link-local", "0 v1 fe80::1, 1 v2 fe80::1", nil, rdma.LinkEthernet, 1, "only link-local"},
		{"range", "0 v1 fe80::1, 1 v2 10.0.0.1, 2 v2 10.7.0.1", map[string]string{"NCCL_IB_ADDR_RANGE": "10.7.0.0/16"}, rdma.LinkEthernet, 2, "first IPv4"},
		{"range misses", usual, map[string]string{"NCCL_IB_ADDR_RANGE": "10.7.0.0/16"}, rdma.LinkEthernet, 3, "none in NCCL_IB_ADDR_RANGE=10.7.0.0/16"},
		{"forced", usual, map[string]string{"NCCL_IB_GID_INDEX": "5"}, rdma.LinkEthernet, 5, "NCCL_IB_GID_INDEX=5"},
		{"forced -1", usual, map[string]string{"NCCL_IB_GID_INDEX": "-1"}, rdma.LinkEthernet, 3, "first"},
		{"forced and absent", usual, map[string]string{"NCCL_IB_GID_INDEX": "7"}, rdma.LinkEthernet, -1, "entry 7 is empty, unreadable"},
		{"per device", usual, map[string]string{"NCCL_IB_GID_INDEX": "2, mlx5_1=4, mlx5_0=5"}, rdma.LinkEthernet, 5, "mlx5_0=5"},
		{"per port", usual, map[string]string{"NCCL_IB_GID_INDEX": "mlx5_0=4,mlx5_0:1=0x1"}, rdma.LinkEthernet, 1, ""},
		{"the rest", usual, map[string]string{"NCCL_IB_GID_INDEX": "mlx5_9=4,2"}, rdma.LinkEthernet, 2, ""},
		{"empty", "", nil, rdma.LinkEthernet, -1, "no usable entry"},
		{"IB", "0 ib fe80::1, 1 ib fe80:0:0:5::1", nil, rdma.LinkInfiniBand, 0, "first entry"},
		{"IB with FLID", "0 ib fe80::1, 1 ib fe80:0:7:5::1", nil, rdma.LinkInfiniBand, 1, "FLID (7)"},
		{"IB ignores the index", "0 ib fe80::1, 1 ib fe80:0:0:5::1", map[string]string{"NCCL_IB_GID_INDEX": "1"}, rdma.LinkInfiniBand, 0, ""},
		{"IB with FLID elsewhere", "0 ib fe80::1, 2 ib fe80:0:7:5::1", map[string]string{"NCCL_IB_ROUTABLE_FLID_GID_INDEX": "2"}, rdma.LinkInfiniBand, 2, "FLID"},
	} {
		rules, problems := RulesOf(knob.Parse(c.env))
		if len(problems) > 0 {
			t.Errorf("%s: %q", c.name, problems)
		}
		got, why, err := rules.Choose("mlx5_0", 1, c.link, gids(t, c.table))
		if err != nil {
			why = err.Error()
		}
		if (err != nil) != (c.want < 0) || err == nil && got[0].Index != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q, want index %d and %q", c.name, got, why, c.want, c.why)
		}
	}
}

func TestGIDKnobsThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ name, value, part string }{
		{"NCCL_IB_ADDR_RANGE", "10.0.0.0", "is not address/length"},
		{"NCCL_IB_ADDR_RANGE", "10.0.0.0/40", "is not address/length"},
		{"NCCL_IB_ADDR_RANGE", "2001:db8::/32", "not of the family"},
		{"NCCL_IB_GID_INDEX", "x", "neither an index"},
		{"NCCL_IB_GID_INDEX", "256", "neither an index"},
		{"NCCL_IB_GID_INDEX", "=3", "neither an index"},
	} {
		rules, problems := RulesOf(knob.Parse(map[string]string{c.name: c.value}))
		if len(problems) != 1 || !strings.Contains(problems[0], c.part) || rules.within.IsValid() || rules.all != -1 {
			t.Errorf("%s=%s: %q, %+v", c.name, c.value, problems, rules)
		}
	}
}

// ncclChoice is NCCL's own search, as its documentation and peers describe it,
// over a table without holes; the test's oracle.
func ncclChoice(table []GID, ipv6 bool, version rdma.GIDType) int {
	valid := func(g GID) bool { return !g.Addr.Unmap().IsLinkLocalUnicast() || g.Addr.Unmap().Is4() }
	cur := 0
	for i := 1; i < len(table); i++ {
		a, b := table[cur], table[i]
		fits := b.Addr.Unmap().Is4() != ipv6
		switch {
		case a.Addr.Unmap().Is4() != b.Addr.Unmap().Is4() && fits:
			cur = i
		case fits && valid(b) && (a.Type != b.Type || !valid(a)) && b.Type == version:
			cur = i
		}
	}
	return cur
}

// Where NCCL finds an address of the wanted family and version, so do we, and it is the same one.
func TestGIDChoiceAgreesWithNCCL(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	agreed := 0
	for range 4000 {
		table := gids(t, "0 v1 fe80::1, 1 v2 fe80::1")
		for i := range r.IntN(8) {
			table = append(table, gids(t, fmt.Sprintf("%d v%d %s", i+2, 1+r.IntN(2), [...]string{"10.0.0.1", "10.0.7.1", "2001:db8::1", "fe80::2"}[r.IntN(4)]))...)
		}
		ipv6, version := r.IntN(2) == 1, rdma.GIDType(1+r.IntN(2))
		rules := Rules{all: -1, ipv6: ipv6, version: version}
		theirs := table[ncclChoice(table, ipv6, version)]
		ours, _, err := rules.Choose("x", 1, rdma.LinkEthernet, table)
		if err != nil {
			t.Fatal(err)
		}
		if rules.Demerits(theirs) == 0 {
			agreed++
			if ours[0] != theirs {
				t.Fatalf("table %v, IPv6 %v, %v: ours %v, NCCL's %v", table, ipv6, version, ours[0], theirs)
			}
		} else if rules.Demerits(ours[0]) > rules.Demerits(theirs) {
			t.Fatalf("table %v: ours %v is worse than NCCL's %v", table, ours[0], theirs)
		}
	}
	if agreed < 500 {
		t.Errorf("only %d tables compared", agreed)
	}
}

func TestReach(t *testing.T) {
	one := func(text string) GID { return gids(t, "0 "+text)[0] }
	for _, c := range []struct {
		a, b string
		want Reach
	}{
		{"v2 10.0.0.1", "v2 10.0.0.2", Direct},
		{"v2 10.0.0.1/30", "v2 10.0.0.5/30", Routed},
		{"v2 10.0.0.1/16", "v2 10.0.9.5/24", Routed},
		{"v2 10.0.0.1", "v1 10.0.0.2", Unreachable},
		{"v1 10.0.0.1", "v1 10.0.1.2", Unreachable},
		{"v2 10.0.0.1", "v2 2001:db8::1", Unreachable},
		{"v2 fe80::1", "v2 fe80::2", SameLinkOnly},
		{"v2 fe80::1", "v2 2001:db8::2", Unreachable},
		{"v2 169.254.1.1", "v2 10.0.0.1", Unreachable},
		{"v2 2001:db8::1", "v2 2001:db8::2", Direct},
		{"v2 2001:db8::1", "v2 2001:db8:1::2", Routed},
		{"ib fe80::1", "ib fe80::2", Direct},
		{"ib fe80::1", "ib fe80:0:0:1::2", Unreachable},
		{"ib fe80::1", "ib fe80:0:9:1::2", Routed},
		{"ib fe80::1", "v2 10.0.0.1", Unreachable},
	} {
		if got := one(c.a).Reaches(one(c.b)); got != c.want {
			t.Errorf("%s to %s: %v, want %v", c.a, c.b, got, c.want)
		}
	}
	l, r, reach := Pair(gids(t, "3 v2 10.0.0.1, 5 v2 10.1.0.1"), gids(t, "1 v2 10.9.0.1, 2 v2 10.1.0.9"))
	if l.Index != 5 || r.Index != 2 || reach != Direct {
		t.Errorf("pair %v %v %v", l, r, reach)
	}
	if _, _, reach := Pair(nil, gids(t, "1 v2 10.9.0.1")); reach != Unreachable {
		t.Error(reach)
	}
}

func FuzzGIDIndex(f *testing.F) {
	for _, s := range []string{"", "3", "-1", "mlx5_0=3,mlx5_1:2=0x4,1", "=,=1,a=", "a=b=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		forced, all, problems := parseGIDIndex(text)
		if all < -1 || all > 255 {
			t.Fatalf("%q: %d", text, all)
		}
		for name, i := range forced {
			if name == "" || i < -1 || i > 255 {
				t.Fatalf("%q: %q=%d", text, name, i)
			}
		}
		if n := strings.Count(text, ",") + 1; len(problems) > n {
			t.Fatalf("%q: %q", text, problems)
		}
	})
}
