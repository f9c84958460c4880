package rendezvous

import (
	"net"
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

// Whoever opens a thousand connections that say one byte has a quarter of them held, and keeps nobody out.
func TestStrangersAreBounded(t *testing.T) {
	lo := []*tcp.Device{anInterface(0, "lo", 1, "127.0.0.1/8")}
	n := NewNetwork(knob.Defaults(), report.Discard{}, lo)
	s := NewSockets(n, NewNoise(report.Discard{}))
	defer s.CloseAll()
	met := make(chan *Conn, 1)
	l := &Listen{ID: 1, Device: "lo", Interfaces: lo, Fresh: func(wire.Nonce) bool { return true }, Proven: func(c *Conn, _ wire.Frame1) { met <- c }}
	eps, err := s.Open(l, wire.HandleMax)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		c, err := net.Dial("tcp", eps[0].AddrPort().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte("w"))
	}
	c, err := dial(t.Context(), Path{Remote: eps[0].AddrPort()}, tcp.DataOptions(knob.Defaults(), -1), false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f1 := wire.Frame1{Version: wire.Version, Role: wire.RoleComm, ListenID: l.ID, Nonce: wire.NewNonce()}
	f1.Sign(&l.Token)
	if _, err := c.Write(f1.Append(nil)); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-met:
		c.Close()
	case <-time.After(20 * time.Second):
		t.Error("who knows the token is kept out")
	}
	if n := s.strangers.held(); n > mostStrangers {
		t.Errorf("%d strangers are held, %d may be", n, mostStrangers)
	}
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
