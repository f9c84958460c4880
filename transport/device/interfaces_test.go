package device_test

import (
	"net/netip"
	"strings"
	"testing"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/rdma"
	"weft/transport/rendezvous"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// netDevice is an interface of the test's own invention.
func netDevice(index int, name string, streams int, addrs ...string) *tcp.Device {
	d := &tcp.Device{Streams: streams}
	d.Device = rdma.Device{Index: index, Name: name, IfIndex: 1, Pointers: rdma.MemHost, PCIPath: "/sys/devices/pci0000:00/0000:00:03.0"}
	for _, a := range addrs {
		d.Addrs = append(d.Addrs, netip.MustParsePrefix(a))
	}
	return d
}

func endpoint(addr string) wire.Endpoint {
	return wire.Endpoint{Addr: netip.MustParseAddr(addr), Prefix: 24, Port: 1}
}

func TestStreamsTakeInterfacesInTurn(t *testing.T) {
	h := &wire.Handle{Addrs: []wire.Endpoint{endpoint("10.1.0.9"), endpoint("10.2.0.9"), endpoint("10.2.0.10"), endpoint("10.9.0.9")}}
	one, two, far := netDevice(0, "eth0", 1, "10.1.0.1/24"), netDevice(1, "eth1", 1, "10.2.0.1/24"), netDevice(2, "eth2", 1, "10.7.0.1/24")
	all := device.NewList(device.Found([]*tcp.Device{one, two, far}, nil), knob.Defaults(), report.Discard{})
	known := rendezvous.Path{Remote: h.Addrs[0].AddrPort()}
	for _, c := range []struct {
		parts []int
		want  string
	}{
		{[]int{0}, "10.1.0.9:1; 10.1.0.9:1; 10.1.0.9:1; 10.1.0.9:1"},
		{[]int{0, 1, 2}, "10.1.0.9:1 from 10.1.0.1; 10.2.0.10:1 from 10.2.0.1; 10.1.0.9:1; 10.1.0.9:1 from 10.1.0.1"},
		{[]int{1}, "10.2.0.9:1 from 10.2.0.1; 10.2.0.10:1 from 10.2.0.1; 10.2.0.9:1 from 10.2.0.1; 10.2.0.10:1 from 10.2.0.1"},
	} {
		d, err := all.Fuse(c.parts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range 4 {
			got = append(got, rendezvous.StreamPath(d.Interfaces(), h, i, known).String())
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %s", d.Name, s)
		}
	}
}

// NCCL loses what it makes of interfaces that are no cards, and init ends there: they stay apart.
func TestVirtualInterfacesStayApart(t *testing.T) {
	card, bond := netDevice(0, "eth0", 1, "10.1.0.1/24"), netDevice(1, "bond0", 1, "10.2.0.1/24")
	bond.PCIPath = ""
	all := device.NewList(device.Found([]*tcp.Device{card, bond}, nil), knob.Defaults(), report.Discard{})
	for _, parts := range [][]int{{0, 1}, {1, 0}} {
		if _, err := all.Fuse(parts); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "bond0 has no PCI address") {
			t.Errorf("%v: %v", parts, err)
		}
	}
	if d, err := all.Fuse([]int{1}); err != nil || d.Name != "bond0" {
		t.Errorf("%v, %v", d, err)
	}
}
