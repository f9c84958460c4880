package port

import (
	"errors"
	"net/netip"
	"testing"

	"weft/transport/verbs/card"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// What the kernel does not say is no reason to leave a path untried.
func TestRouteTo(t *testing.T) {
	for _, tc := range []struct {
		name  string
		local gid.GID
		found bool
		err   error
		want  bool
	}{
		{"a route", gid.GID{Type: ibv.GIDRoCEv2, NetDev: "eth0"}, true, nil, true},
		{"none", gid.GID{Type: ibv.GIDRoCEv2, NetDev: "eth0"}, false, nil, false},
		{"the kernel does not say", gid.GID{Type: ibv.GIDRoCEv2, NetDev: "eth0"}, false, errors.New("not permitted"), true},
		{"the network device is not visible", gid.GID{Type: ibv.GIDRoCEv2}, false, nil, true},
		{"InfiniBand", gid.GID{Type: ibv.GIDInfiniBand, NetDev: "ib0"}, false, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.local.Addr = netip.MustParseAddr("::ffff:10.0.0.1")
			d := &Device{card: new(card.Card)}
			d.card.Lib = &card.Library{Host: &machine.Machine{Route: func(dev string, from, to netip.Addr) (bool, error) {
				if dev != "eth0" || from != netip.MustParseAddr("10.0.0.1") || to != netip.MustParseAddr("10.1.0.1") {
					t.Errorf("asked for %s to %s by %s", from, to, dev)
				}
				return tc.found, tc.err
			}}}
			if got := d.RouteTo(tc.local, gid.GID{Addr: netip.MustParseAddr("::ffff:10.1.0.1")}); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
