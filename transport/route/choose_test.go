package route

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
)

// rocev2 is a GID of an address in CIDR notation.
func rocev2(cidr string) gid.GID {
	p := netip.MustParsePrefix(cidr)
	return gid.GID{Addr: netip.AddrFrom16(p.Addr().As16()), Type: ibv.GIDRoCEv2, Bits: p.Bits()}
}

func infiniband(addr string) gid.GID {
	return gid.GID{Addr: netip.MustParseAddr(addr), Type: ibv.GIDInfiniBand, Bits: 64}
}

// At most three trials, each without the pairs of those before.
func TestChooseRoute(t *testing.T) {
	at := func(index uint16, speed int, gids ...gid.GID) Port {
		return Port{Index: index, Speed: speed, GIDs: gids}
	}
	const cabled = "no route" // this host's routing table leads to the peers of its own cables only
	for _, tc := range []struct {
		name             string
		local, peer      []Port
		asked, peerAsked uint16
		want             []string
		routes           string
	}{
		{"nobody there", []Port{at(0, 100, rocev2("10.0.0.1/24"))}, nil, 0, 0, nil, ""},
		{"one subnet", []Port{at(0, 100, rocev2("10.0.0.1/24"))}, []Port{at(0, 100, rocev2("10.0.0.2/24"))}, 0, 0, []string{"0-0 direct"}, ""},
		{"the asked pair before a faster one",
			[]Port{at(0, 100, rocev2("10.0.0.1/24")), at(1, 400, rocev2("10.1.0.1/24"))},
			[]Port{at(0, 100, rocev2("10.0.0.2/24")), at(1, 400, rocev2("10.1.0.2/24"))}, 0, 0, []string{"0-0 direct", "1-1 direct"}, ""},
		{"crossed rails: the asked pair by routers, then the fastest that shares a subnet",
			[]Port{at(0, 100, rocev2("10.0.0.1/24")), at(1, 200, rocev2("10.1.0.1/24"))},
			[]Port{at(0, 100, rocev2("10.0.0.2/24")), at(1, 200, rocev2("10.1.0.2/24"))}, 0, 1, []string{"0-1 routed", "1-1 direct", "0-0 direct"}, ""},
		{"a routed fabric before a slower shared network",
			[]Port{at(0, 400, rocev2("10.0.0.0/31")), at(1, 25, rocev2("10.9.0.1/16"))},
			[]Port{at(0, 400, rocev2("10.0.0.2/31")), at(1, 25, rocev2("10.9.0.2/16"))}, 0, 0, []string{"0-0 routed", "1-1 direct"}, ""},
		{"crossed cables: the asked pair, to which there is no route, last",
			[]Port{at(0, 100, rocev2("10.0.0.1/24")), at(1, 200, rocev2("10.1.0.1/24"))},
			[]Port{at(0, 100, rocev2("10.0.0.2/24")), at(1, 200, rocev2("10.1.0.2/24"))}, 0, 1, []string{"1-1 direct", "0-0 direct", "0-1 routed"}, cabled},
		{"no other pair: the asked one, whatever the routing table says",
			[]Port{at(0, 100, rocev2("10.0.0.1/24"))}, []Port{at(0, 100, rocev2("10.1.0.2/24"))}, 0, 0, []string{"0-0 routed"}, cabled},
		{"among equals one that was asked for",
			[]Port{at(0, 100, rocev2("10.0.0.1/24")), at(1, 100, rocev2("10.0.0.3/24"))},
			[]Port{at(0, 100, rocev2("10.5.0.2/24")), at(1, 100, rocev2("10.0.0.4/24"))}, 1, 0, []string{"1-0 routed", "1-1 direct", "0-1 direct"}, ""},
		{"a slow end makes a slow pair",
			[]Port{at(0, 400, rocev2("10.0.0.1/24")), at(1, 100, rocev2("10.1.0.1/24"))},
			[]Port{at(0, 10, rocev2("10.0.0.2/24")), at(1, 100, rocev2("10.1.0.2/24")), at(2, 1, rocev2("10.9.0.1/24"))}, 0, 2,
			[]string{"0-2 routed", "1-1 direct", "0-0 direct"}, ""},
		{"no more than three",
			[]Port{at(0, 100, rocev2("10.0.0.1/24")), at(1, 100, rocev2("10.0.0.2/24"))},
			[]Port{at(0, 100, rocev2("10.0.0.3/24")), at(1, 100, rocev2("10.0.0.4/24"))}, 1, 1, []string{"1-1 direct", "0-1 direct", "1-0 direct"}, ""},
		{"only the asked pair is worth a router", []Port{at(0, 100, rocev2("10.0.0.1/24")), at(1, 100, rocev2("10.1.0.1/24"))},
			[]Port{at(0, 100, rocev2("10.2.0.1/24")), at(1, 100, rocev2("10.3.0.1/24"))}, 1, 0, []string{"1-0 routed"}, ""},
		{"the GID that shares the subnet, not the first", []Port{at(0, 100, rocev2("10.0.0.1/24"), rocev2("2001:db8::1/64"))},
			[]Port{at(0, 100, rocev2("10.9.0.1/24"), rocev2("2001:db8::2/64"))}, 0, 0, []string{"0-0 direct"}, ""},
		{"link-local only", []Port{at(0, 100, rocev2("fe80::1/64"))}, []Port{at(0, 100, rocev2("fe80::2/64"))}, 0, 0, nil, ""},
		{"InfiniBand and Ethernet", []Port{at(0, 100, infiniband("fe80::1"))}, []Port{at(0, 100, rocev2("10.0.0.1/24"))}, 0, 0, nil, ""},
		{"InfiniBand", []Port{at(0, 100, infiniband("fe80::1"))}, []Port{at(3, 100, infiniband("fe80::2"))}, 0, 3, []string{"0-3 direct"}, ""},
		{"an asked index that nobody has", []Port{at(0, 100, rocev2("10.0.0.1/24"))}, []Port{at(7, 100, rocev2("10.0.0.2/24"))}, 0, 65535, []string{"0-7 direct"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			bad := map[[2]uint16]bool{}
			for range Trials {
				for _, c := range Choose(tc.local, tc.peer, []uint16{tc.asked}, []uint16{tc.peerAsked}, bad, func(*Choice) bool { return tc.routes != cabled }) {
					got = append(got, fmt.Sprintf("%d-%d %s", c.Local.Index, c.Peer.Index, c.Reach))
					if c.GID.Reaches(c.PeerGID) != c.Reach {
						t.Errorf("%v to %v is %v", c.GID, c.PeerGID, c.Reach)
					}
					bad[c.Key()] = true
				}
			}
			if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}
