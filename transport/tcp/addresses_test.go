package tcp

import (
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// attr encodes one netlink attribute.
func attr(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func message(family, bits, flags byte, index uint32, attrs ...[]byte) *syscall.NetlinkMessage {
	data := binary.NativeEndian.AppendUint32([]byte{family, bits, flags, 0}, index)
	for _, a := range attrs {
		data = append(data, a...)
	}
	return &syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: syscall.RTM_NEWADDR}, Data: data}
}

func TestParseAddress(t *testing.T) {
	six := []byte{0xfe, 0x80, 14: 0, 15: 1}
	for _, c := range []struct {
		name string
		m    *syscall.NetlinkMessage
		want string // "" when the address is left out
	}{
		{"IPv4", message(syscall.AF_INET, 24, 0, 3, attr(syscall.IFA_ADDRESS, 10, 0, 0, 1), attr(syscall.IFA_LOCAL, 10, 0, 0, 1)), "10.0.0.1/24"},
		{"point to point", message(syscall.AF_INET, 32, 0, 3, attr(syscall.IFA_ADDRESS, 10, 0, 0, 9), attr(syscall.IFA_LOCAL, 10, 0, 0, 1)), "10.0.0.1/32"},
		{"IPv6", message(syscall.AF_INET6, 64, 0, 3, attr(syscall.IFA_ADDRESS, six...)), "fe80::1/64"},
		{"tentative", message(syscall.AF_INET6, 64, flagTentative, 3, attr(syscall.IFA_ADDRESS, six...)), ""},
		{"optimistic", message(syscall.AF_INET6, 64, flagTentative|flagOptimistic, 3, attr(syscall.IFA_ADDRESS, six...)), "fe80::1/64"},
		{"duplicate", message(syscall.AF_INET6, 64, flagDADFailed, 3, attr(syscall.IFA_ADDRESS, six...)), ""},
		{"long flags", message(syscall.AF_INET6, 64, 0, 3, attr(syscall.IFA_ADDRESS, six...), attr(ifaFlags, flagTentative, 1, 0, 0)), ""},
		{"no address", message(syscall.AF_INET, 24, 0, 3), ""},
		{"bits", message(syscall.AF_INET, 33, 0, 3, attr(syscall.IFA_LOCAL, 10, 0, 0, 1)), ""},
		{"family", message(syscall.AF_PACKET, 24, 0, 3, attr(syscall.IFA_LOCAL, 10, 0, 0, 1)), ""},
		{"short", &syscall.NetlinkMessage{Data: []byte{syscall.AF_INET, 24}}, ""},
	} {
		got, flags, ok := parseAddress(c.m)
		ok = ok && canBind(flags)
		if ok != (c.want != "") || ok && (got.Prefix.String() != c.want || got.IfIndex != 3) {
			t.Errorf("%s: %v, %v", c.name, got, ok)
		}
	}
}

// The addresses are those that package net finds by another way.
func TestAddresses(t *testing.T) {
	got, err := Addresses()
	if err != nil {
		t.Fatal(err)
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	want := map[netip.Addr]struct{}{}
	for _, a := range all {
		addr, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		want[addr.Unmap()] = struct{}{}
	}
	if len(want) == 0 || !maps.Equal(got, want) {
		t.Errorf("%v, package net has %v", got, want)
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add(message(syscall.AF_INET, 24, 0, 3, attr(syscall.IFA_LOCAL, 10, 0, 0, 1)).Data)
	f.Add(message(syscall.AF_INET6, 200, 8, 3, attr(syscall.IFA_ADDRESS, 1), attr(ifaFlags, 1)).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: syscall.RTM_NEWADDR}, Data: data}
		if a, _, ok := parseAddress(m); ok && !a.Prefix.IsValid() {
			t.Errorf("%x gives %v", data, a)
		}
	})
}
