package rendezvous

import (
	"net/netip"
	"testing"

	"weft/transport/wire"
)

func TestOutsideLeavesLoopbackOut(t *testing.T) {
	endpoint := func(a string) wire.Endpoint { return wire.Endpoint{Addr: netip.MustParseAddr(a), Port: 1} }
	c := &Network{Origin: 1}
	both := []wire.Endpoint{endpoint("127.0.0.1"), endpoint("10.0.0.1"), endpoint("::1")}
	for _, k := range []struct {
		origin uint8
		left   int
	}{{0, 3}, {1, 3}, {2, 1}} {
		h := &wire.Handle{Origin: k.origin, Addrs: both}
		if err := c.Outside(h); err != nil || len(h.Addrs) != k.left || len(both) != 3 {
			t.Errorf("origin %d: %v, %v", k.origin, h.Addrs, err)
		}
	}
	if m := origin(); m == 0 || m != origin() {
		t.Errorf("this host's mark is %d, then %d", m, origin())
	}
}
