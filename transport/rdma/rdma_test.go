package rdma

import (
	"net/netip"
	"strings"
	"testing"
)

func TestScopedOnlyMarksLinkLocal(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "169.254.1.1": "169.254.1.1", "2001:db8::1": "2001:db8::1", "fe80::1": "fe80::1%7",
	} {
		if got := Scoped(netip.MustParseAddr(addr), 7).String(); got != want {
			t.Errorf("Scoped(%s) = %s, want %s", addr, got, want)
		}
	}
	d := Device{Name: "eth0", IfIndex: 3, Addrs: []netip.Prefix{netip.MustParsePrefix("fe80::1/64"), netip.MustParsePrefix("10.1.0.1/16")}}
	if d.Addr(0).Zone() != "3" || !d.Reaches(netip.MustParseAddr("10.1.9.9")) || d.Reaches(netip.MustParseAddr("10.2.0.1")) {
		t.Error("Addr or Reaches is wrong")
	}
	if !d.Reaches(netip.MustParseAddr("fe80::9%eth5")) || !strings.HasPrefix(d.String(), "eth0:") {
		t.Error("Reaches or String is wrong")
	}
}

func TestMemKind(t *testing.T) {
	if s := (MemHost | MemDMABUF).String(); s != "host|dmabuf" || MemKind(0).String() != "none" {
		t.Error(s)
	}
	if MemHost.Has(MemCUDA) || !(MemHost | MemCUDA).Has(MemCUDA) {
		t.Error("Has")
	}
}
