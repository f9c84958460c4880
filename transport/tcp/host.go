package tcp

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"syscall"

	"weft/internal/report"
	"weft/transport/tcp/ifname"
)

// Host is what discovery looks at. Tests describe other machines with it.
type Host struct {
	ifname.Host
	Sysfs string // "/sys"
}

// ThisHost asks the kernel.
func ThisHost() (*Host, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, unreadable("interfaces", err)
	}
	h := &Host{Sysfs: "/sys"}
	h.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}
	for _, l := range links {
		h.Interfaces = append(h.Interfaces, ifname.Interface{
			Index: l.Index, Name: l.Name, MTU: l.MTU, Running: l.Flags&net.FlagRunning != 0})
	}
	if h.Addresses, err = kernelAddresses(); err != nil {
		return nil, unreadable("addresses", err)
	}
	return h, nil
}

// Down says why nothing passes the interface now, "" while something can.
func (d *Device) Down() string {
	if l, err := net.InterfaceByName(d.Name); err == nil && l.Flags&net.FlagRunning == 0 {
		return "the link is down"
	}
	return ""
}

func unreadable(what string, err error) error {
	return report.Errorf(report.Host, "devices", "cannot read the %s of this machine: %w", what, err).
		Try("allow AF_NETLINK sockets: a seccomp or container profile forbids them")
}

// kernelAddresses is getifaddrs without its gaps: package net gives addresses
// per interface and drops their order and flags.
func kernelAddresses() ([]ifname.Address, error) {
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("netlink RTM_GETADDR: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return nil, fmt.Errorf("netlink RTM_GETADDR: %w", err)
	}
	var all []ifname.Address
	for i := range messages {
		if messages[i].Header.Type != syscall.RTM_NEWADDR {
			continue
		}
		if a, ok := parseAddress(&messages[i]); ok {
			all = append(all, a)
		}
	}
	return all, nil
}

const (
	ifaFlags       = 8 // IFA_FLAGS: the 32-bit flags that the header's byte has no room for
	flagOptimistic = 0x04
	flagDADFailed  = 0x08
	flagTentative  = 0x40
)

// parseAddress leaves out addresses that cannot be bound: duplicate address
// detection still runs on them, or failed.
func parseAddress(m *syscall.NetlinkMessage) (ifname.Address, bool) {
	if len(m.Data) < syscall.SizeofIfAddrmsg {
		return ifname.Address{}, false
	}
	family, bits, flags := m.Data[0], int(m.Data[1]), uint32(m.Data[2])
	if family != syscall.AF_INET && family != syscall.AF_INET6 {
		return ifname.Address{}, false
	}
	var own, other netip.Addr // on a point-to-point link IFA_ADDRESS is the peer's
	for kind, value := range attributes(m.Data[syscall.SizeofIfAddrmsg:]) {
		switch kind {
		case syscall.IFA_LOCAL:
			own, _ = netip.AddrFromSlice(value)
		case syscall.IFA_ADDRESS:
			other, _ = netip.AddrFromSlice(value)
		case ifaFlags:
			if len(value) >= 4 {
				flags = binary.NativeEndian.Uint32(value)
			}
		}
	}
	if !own.IsValid() {
		own = other
	}
	if flags&flagDADFailed != 0 || flags&flagTentative != 0 && flags&flagOptimistic == 0 {
		return ifname.Address{}, false
	}
	prefix := netip.PrefixFrom(own, bits)
	return ifname.Address{IfIndex: int(binary.NativeEndian.Uint32(m.Data[4:8])), Prefix: prefix}, prefix.IsValid()
}

// attributes walks netlink attributes: length 2, type 2, value, padding to 4.
// Package syscall's parser panics when the padding of the last one is missing.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= syscall.SizeofRtAttr {
			n := int(binary.NativeEndian.Uint16(b))
			if n < syscall.SizeofRtAttr || n > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:]), b[syscall.SizeofRtAttr:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}
