package ifname

import (
	"net/netip"
	"testing"
)

func FuzzCommIDAddr(f *testing.F) {
	for _, s := range []string{"10.0.0.1:4", "[fe80::1%eth0]:4", "[", "[]", ":", "head:4", "::1", "[::ffff:1.2.3.4]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		h := &Host{Interfaces: []Interface{{Index: 1, Name: "lo", Running: true}, {Index: 2, Name: "eth0", Running: true}},
			Addresses: []Address{{1, netip.MustParsePrefix("127.0.0.1/8")}, {2, netip.MustParsePrefix("10.0.0.5/24")}, {2, netip.MustParsePrefix("fe80::5/64")}}}
		a, err := h.commIDAddr(id)
		if (err == nil) != a.IsValid() {
			t.Errorf("%q: %v, %v", id, a, err)
		}
		if found, err := h.nearCommID(id, ""); err == nil && len(found) > 1 {
			t.Errorf("%q: %d interfaces", id, len(found))
		}
	})
}
