package machine

import (
	"net/netip"
	"testing"
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

func FuzzRouteAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Add(routeRequest(1, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if found, err := routeAnswer(b, 1); found && err != nil {
			t.Error("a route and an error")
		}
	})
}
