package verbs

import (
	"errors"
	"net/netip"
	"testing"

	"weft/transport/verbs/ibv"
)

// The loopback device is there on every machine; what lies behind no device of it has no route by it.
func TestKernelRoute(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"127.0.0.1", "127.0.0.2", true},
		{"127.0.0.1", "203.0.113.9", false},
		{"::1", "::1", true},
		{"::1", "2001:db8::9", false},
	} {
		from, to := netip.MustParseAddr(tc.from), netip.MustParseAddr(tc.to)
		got, err := kernelRoute("lo", from, to)
		if err != nil && from.Is6() {
			t.Logf("IPv6 is off here: %v", err)
			continue
		}
		if err != nil || got != tc.want {
			t.Errorf("%s to %s by lo: %v, %v; want %v", tc.from, tc.to, got, err, tc.want)
		}
	}
	if _, err := kernelRoute("nosuchdevice", netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")); err == nil {
		t.Error("a device that is not there has a route")
	}
}

// What the kernel does not say is no reason to leave a path untried.
func TestRouteTo(t *testing.T) {
	for _, tc := range []struct {
		name  string
		local GID
		found bool
		err   error
		want  bool
	}{
		{"a route", GID{Type: ibv.GIDRoCEv2, NetDev: "eth0"}, true, nil, true},
		{"none", GID{Type: ibv.GIDRoCEv2, NetDev: "eth0"}, false, nil, false},
		{"the kernel does not say", GID{Type: ibv.GIDRoCEv2, NetDev: "eth0"}, false, errors.New("not permitted"), true},
		{"the network device is not visible", GID{Type: ibv.GIDRoCEv2}, false, nil, true},
		{"InfiniBand", GID{Type: ibv.GIDInfiniBand, NetDev: "ib0"}, false, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.local.Addr = netip.MustParseAddr("::ffff:10.0.0.1")
			d := &Device{provider: &Provider{host: &Host{Route: func(dev string, from, to netip.Addr) (bool, error) {
				if dev != "eth0" || from != netip.MustParseAddr("10.0.0.1") || to != netip.MustParseAddr("10.1.0.1") {
					t.Errorf("asked for %s to %s by %s", from, to, dev)
				}
				return tc.found, tc.err
			}}}}
			if got := d.RouteTo(tc.local, GID{Addr: netip.MustParseAddr("::ffff:10.1.0.1")}); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func FuzzRouteAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Add(routeRequest(1, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if found, err := routeAnswer(b, 1); found && err != nil {
			t.Error("a route and an error")
		}
	})
}
