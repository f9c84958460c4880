package rendezvous

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/transport/tcp"
	"weft/transport/wire"
)

func ep(s string, bits uint8) wire.Endpoint {
	return wire.Endpoint{Addr: netip.MustParseAddr(s), Prefix: bits, Port: 5}
}

func TestPaths(t *testing.T) {
	dev := anInterface(0, "eth0", 1, "10.0.0.1/24", "10.1.0.1/24", "fe80::1/64", "2001:db8::1/64")
	dev.IfIndex = 3
	h := &wire.Handle{Addrs: []wire.Endpoint{ep("172.16.0.9", 16), ep("10.1.0.9", 24), ep("2001:db8::9", 64), ep("fe80::9", 64)}}
	var got []string
	for _, p := range pathsFrom(dev, h) {
		got = append(got, p.String())
	}
	want := []string{
		"10.1.0.9:5 from 10.1.0.1", "[2001:db8::9]:5 from 2001:db8::1", "[fe80::9%3]:5 from fe80::1%3", // shared subnets
		"172.16.0.9:5 from 10.0.0.1",                    // another, still by this device
		"10.1.0.9:5", "[2001:db8::9]:5", "172.16.0.9:5", // wherever the routes lead
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAdvertised(t *testing.T) {
	eth0 := anInterface(0, "eth0", 1, "10.0.0.1/24", "10.0.0.2/24", "fe80::1/64")
	eth1 := anInterface(1, "eth1", 1, "10.0.0.3/24", "10.2.0.1/24", "fe80::2/64")
	v6 := anInterface(2, "eth2", 1, "fe80::3/64")
	for _, tc := range []struct {
		name string
		all  []*tcp.Device
		dev  *tcp.Device
		want []string
	}{
		{"own first, one per subnet", []*tcp.Device{eth0, eth1}, eth1, []string{"10.0.0.3", "10.2.0.1"}},
		{"others' subnets too", []*tcp.Device{eth0, eth1}, eth0, []string{"10.0.0.1", "10.2.0.1"}},
		{"link-local for want of better", []*tcp.Device{v6}, v6, []string{"fe80::3%1"}},
		{"no link-local beside others", []*tcp.Device{v6, eth0}, v6, []string{"10.0.0.1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, a := range advertised(tc.all, tc.dev) {
				got = append(got, a.addr.String())
			}
			if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}
