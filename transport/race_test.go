package transport

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

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
			s, r := meet(t, a, l, handle)
			move(t, s, r, 100)
			if c, err := l.Accept(); c != nil || err != nil {
				t.Errorf("a second comm: %v %v", c, err)
			}
		})
	}
}
