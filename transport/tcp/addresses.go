package tcp

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"syscall"

	"weft/transport/tcp/ifname"
)

// bindable lists the addresses that sockets can have, as getifaddrs does without its gaps: package net gives addresses per
// interface and drops their order and flags.
func bindable() ([]ifname.Address, error) {
	dump, err := dumpAddresses()
	if err != nil {
		return nil, err
	}
	var all []ifname.Address
	for a, flags := range dump {
		if canBind(flags) {
			all = append(all, a)
		}
	}
	return all, nil
}

// Addresses are those that this machine has, IPv4 as such. One whose duplicate address detection runs, as it does again when a link comes
// back, is among them. Package net would ask for every interface as well, which takes several times as long.
func Addresses() (map[netip.Addr]struct{}, error) {
	dump, err := dumpAddresses()
	if err != nil {
		return nil, err
	}
	all := map[netip.Addr]struct{}{}
	for a := range dump {
		all[a.Prefix.Addr().Unmap()] = struct{}{}
	}
	return all, nil
}

// dumpAddresses asks the kernel for every address and its flags, in its order.
func dumpAddresses() (iter.Seq2[ifname.Address, uint32], error) {
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("netlink RTM_GETADDR: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return nil, fmt.Errorf("netlink RTM_GETADDR: %w", err)
	}
	return func(yield func(ifname.Address, uint32) bool) {
		for i := range messages {
			if messages[i].Header.Type != syscall.RTM_NEWADDR {
				continue
			}
			if a, flags, ok := parseAddress(&messages[i]); ok && !yield(a, flags) {
				return
			}
		}
	}, nil
}

const (
	ifaFlags       = 8 // IFA_FLAGS: the 32-bit flags that the header's byte has no room for
	flagOptimistic = 0x04
	flagDADFailed  = 0x08
	flagTentative  = 0x40
)

// canBind is false while duplicate address detection runs on an address, and once it has failed.
func canBind(flags uint32) bool {
	return flags&flagDADFailed == 0 && (flags&flagTentative == 0 || flags&flagOptimistic != 0)
}

// parseAddress reads one address of a dump.
func parseAddress(m *syscall.NetlinkMessage) (a ifname.Address, flags uint32, ok bool) {
	if len(m.Data) < syscall.SizeofIfAddrmsg {
		return a, 0, false
	}
	family, bits := m.Data[0], int(m.Data[1])
	flags = uint32(m.Data[2])
	if family != syscall.AF_INET && family != syscall.AF_INET6 {
		return a, 0, false
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
	prefix := netip.PrefixFrom(own, bits)
	return ifname.Address{IfIndex: int(binary.NativeEndian.Uint32(m.Data[4:8])), Prefix: prefix}, flags, prefix.IsValid()
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
