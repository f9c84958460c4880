package transport

import (
	"fmt"
	"net"
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

func TestSocketsFollowTheListens(t *testing.T) {
	others := listening(t)
	p := start(t, nil, netDevice(0, "lo", 1, "127.0.0.1/8"), netDevice(1, "lo6", 1, "::1/128"))
	var told []wire.Endpoint
	// opens requires so many sockets, all of them where a handle says that there is one.
	opens := func(want int, when string) {
		t.Helper()
		reached := 0
		for _, e := range told {
			if c, err := net.DialTimeout("tcp", e.AddrPort().String(), testLimit); err == nil {
				c.Close()
				reached++
			}
		}
		if n := listening(t) - others; n != want || reached != want {
			t.Errorf("%d sockets, %d of them reached by %v, %s", n, reached, told, when)
		}
	}
	opens(0, "without a listen")
	l1, h1 := p.listen(t, wire.HandleMin) // room for one address of this family
	if told = parsed(t, h1).Addrs; len(told) != 1 {
		t.Errorf("the small handle has %v", told)
	}
	opens(1, "with a small handle")
	l2, h2 := p.listen(t, wire.HandleMax)
	if told = parsed(t, h2).Addrs; len(told) != 2 || told[0].Port != parsed(t, h1).Addrs[0].Port {
		t.Errorf("the large handle has %v, the small one %v", told, parsed(t, h1).Addrs)
	}
	opens(2, "with a large handle")
	l1.Close()
	opens(2, "while one listen is left")
	l2.Close()
	opens(0, "when none is left")
}

func TestListenOnAnAddressThatIsNotHere(t *testing.T) {
	gone := start(t, nil, netDevice(0, "eth9", 1, "192.0.2.77/24"))
	if _, err := gone.ctx.Listen(0, make([]byte, 128)); report.CauseOf(err) != report.Host {
		t.Errorf("listen on an address that is not here: %v", err)
	}
}
