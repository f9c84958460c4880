package transport

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/transport/tcp"
	"weft/transport/wire"
)

// imposter is something else on a port: it accepts and does what it is told.
func imposter(t *testing.T, do func(c net.Conn)) wire.Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go do(c)
		}
	}()
	return endpointOf(l.Addr())
}

func endpointOf(a net.Addr) wire.Endpoint {
	ap := a.(*net.TCPAddr).AddrPort()
	return wire.Endpoint{Addr: ap.Addr().Unmap(), Prefix: 8, Port: ap.Port()}
}

func TestRaceFindsTheListener(t *testing.T) {
	closed := func() wire.Endpoint {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		defer l.Close()
		return endpointOf(l.Addr())
	}
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	for name, before := range map[string]wire.Endpoint{
		"a refusal":             closed(),
		"no route":              {Addr: netip.MustParseAddr("192.0.2.1"), Prefix: 24, Port: 9},
		"another family":        {Addr: netip.MustParseAddr("2001:db8::1"), Prefix: 64, Port: 9},
		"one that hangs up":     imposter(t, func(c net.Conn) { c.Close() }),
		"one that is silent":    imposter(t, func(c net.Conn) { <-hold; c.Close() }),
		"one that says garbage": imposter(t, func(c net.Conn) { io.WriteString(c, strings.Repeat("x", 400)); <-hold; c.Close() }),
		"one that echoes":       imposter(t, func(c net.Conn) { io.Copy(c, c); c.Close() }),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := start(t, nil), start(t, nil)
			l, handle := b.listen(t, wire.HandleMax)
			h := parsed(t, handle)
			h.Addrs = append([]wire.Endpoint{before}, h.Addrs...)
			copy(handle, h.Append(nil))
			s, err := a.connect(handle)
			if err != nil {
				t.Fatal(err)
			}
			r, err := accept(l)
			if err != nil {
				t.Fatal(err)
			}
			move(t, s, r, 100)
			if c, err := l.Accept(); c != nil || err != nil {
				t.Errorf("a second comm: %v %v", c, err)
			}
		})
	}
}

func ep(s string, bits uint8) wire.Endpoint {
	return wire.Endpoint{Addr: netip.MustParseAddr(s), Prefix: bits, Port: 5}
}

func TestPaths(t *testing.T) {
	dev := device(0, "eth0", 1, "10.0.0.1/24", "10.1.0.1/24", "fe80::1/64", "2001:db8::1/64")
	dev.IfIndex = 3
	h := &wire.Handle{Addrs: []wire.Endpoint{ep("172.16.0.9", 16), ep("10.1.0.9", 24), ep("2001:db8::9", 64), ep("fe80::9", 64)}}
	var got []string
	for _, p := range paths(dev, h) {
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
	eth0 := device(0, "eth0", 1, "10.0.0.1/24", "10.0.0.2/24", "fe80::1/64")
	eth1 := device(1, "eth1", 1, "10.0.0.3/24", "10.2.0.1/24", "fe80::2/64")
	v6 := device(2, "eth2", 1, "fe80::3/64")
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
