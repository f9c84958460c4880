package rendezvous

import (
	"net/netip"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

func anInterface(index int, name string, ifIndex int, cidrs ...string) *tcp.Device {
	d := &tcp.Device{Device: rdma.Device{Index: index, Name: name, IfIndex: ifIndex}}
	for _, c := range cidrs {
		d.Addrs = append(d.Addrs, netip.MustParsePrefix(c))
	}
	return d
}

func TestAddressThatVanished(t *testing.T) {
	n := NewNetwork(knob.Defaults(), report.Discard{}, nil)
	s := NewSockets(n, NewNoise(report.Discard{}))
	defer s.CloseAll()
	lo := anInterface(0, "lo", 1, "127.0.0.1/8")
	if _, err := s.Open(&Listen{ID: 1, Device: lo.Name, Interfaces: []*tcp.Device{lo}}, wire.HandleMax); err != nil {
		t.Fatal(err)
	}
	old := s.socks[lo.Addr(0)]
	n.Local.at, n.Local.have = time.Now().Add(time.Hour), map[netip.Addr]struct{}{}
	eps, err := s.Open(&Listen{ID: 2, Device: lo.Name, Interfaces: []*tcp.Device{lo}}, wire.HandleMax) // binds again: in truth the address is there
	if err != nil {
		t.Fatal(err)
	}
	now := s.socks[lo.Addr(0)] // the kernel may give it the same port
	if now == old || eps[0].Port != now.addr.Port() {
		t.Error("the socket of a vanished address is advertised")
	}
}
