package transport

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/wire"
)

// twoFreePorts finds neighbours that nobody on this machine listens on.
func twoFreePorts(t *testing.T) uint16 {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		low := l.Addr().(*net.TCPAddr).AddrPort().Port()
		l.Close()
		if low == 65535 {
			continue
		}
		if m, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", low+1)); err == nil {
			m.Close()
			return low
		}
	}
	t.Skip("no two free ports in a row")
	return 0
}

func TestPortRange(t *testing.T) {
	low := twoFreePorts(t)
	env := map[string]string{"WEFT_PORT_RANGE": fmt.Sprintf("%d-%d", low, low+1)}
	dev := netDevice(0, "lo", 1, "127.0.0.1/8")
	a, b, c := start(t, env, dev), start(t, env, dev), start(t, env, dev)
	_, h1 := a.listen(t, wire.HandleMax)
	_, h2 := b.listen(t, wire.HandleMax)
	p1, p2 := parsed(t, h1).Addrs[0].Port, parsed(t, h2).Addrs[0].Port
	if p1 == p2 || min(p1, p2) != low || max(p1, p2) != low+1 {
		t.Errorf("ports %d and %d", p1, p2)
	}
	if _, err := c.ctx.Listen(0, make([]byte, 128)); report.CauseOf(err) != report.Host || !strings.Contains(err.Error(), "WEFT_PORT_RANGE=") {
		t.Errorf("a third process: %v", err)
	}
}

// tells adds the addresses of a handle to those that are known.
func tells(t *testing.T, known *[]string, handle []byte) {
	t.Helper()
	for _, e := range parsed(t, handle).Addrs {
		if a := e.AddrPort().String(); !slices.Contains(*known, a) {
			*known = append(*known, a)
		}
	}
}

func TestSocketsFollowTheListens(t *testing.T) {
	p := start(t, nil, netDevice(0, "lo", 1, "127.0.0.1/8"), netDevice(1, "lo6", 1, "::1/128"))
	var known []string // addresses that were told
	sockets := func() (open int) {
		for _, a := range known {
			if c, err := net.DialTimeout("tcp", a, testLimit); err == nil {
				c.Close()
				open++
			}
		}
		return open
	}
	l1, h1 := p.listen(t, wire.HandleMin) // room for one address of this family
	tells(t, &known, h1)
	if n := sockets(); n != 1 || len(parsed(t, h1).Addrs) != 1 {
		t.Errorf("%d sockets for %v", n, parsed(t, h1).Addrs)
	}
	l2, h2 := p.listen(t, wire.HandleMax)
	tells(t, &known, h2)
	if n := sockets(); n != 2 || len(parsed(t, h2).Addrs) != 2 || parsed(t, h2).Addrs[0].Port != parsed(t, h1).Addrs[0].Port {
		t.Errorf("%d sockets for %v", n, parsed(t, h2).Addrs)
	}
	l1.Close()
	if n := sockets(); n != 2 {
		t.Errorf("%d sockets while one listen is left", n)
	}
	l2.Close()
	if n := sockets(); n != 0 {
		t.Errorf("%d sockets without a listen", n)
	}
}

func TestListenOnAnAddressThatIsNotHere(t *testing.T) {
	gone := start(t, nil, netDevice(0, "eth9", 1, "192.0.2.77/24"))
	if _, err := gone.ctx.Listen(0, make([]byte, 128)); report.CauseOf(err) != report.Host {
		t.Errorf("listen on an address that is not here: %v", err)
	}
}
