// Package gid knows the GIDs of ports: which of a table is to be used, and which reaches which.
package gid

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"weft/transport/rdma"
)

// GID is one usable entry of a port's GID table.
type GID struct {
	Addr   netip.Addr // 16 bytes; IPv4-mapped for an IPv4 address
	Index  int
	Type   rdma.GIDType
	NetDev string // network device behind it; "" when it is not visible here
	Bits   int    // length of its subnet
}

// subnet is the subnet that the address lies in.
func (g GID) subnet() netip.Prefix { return netip.PrefixFrom(g.Addr.Unmap(), g.Bits).Masked() }

// linkLocal reports an address that means something on its own link only.
// InfiniBand's default subnet looks like one and is none.
func (g GID) linkLocal() bool {
	return g.Type != rdma.GIDInfiniBand && g.Addr.Unmap().IsLinkLocalUnicast()
}

func (g GID) String() string {
	s := fmt.Sprintf("%s (index %d, %s", g.Addr.Unmap(), g.Index, g.Type)
	if g.NetDev != "" {
		s += ", " + g.NetDev
	}
	return s + ")"
}

// FLID is the local identifier that routes to another InfiniBand subnet; 0: none.
func (g GID) FLID() uint16 { b := rdma.GIDBytes(g.Addr); return binary.BigEndian.Uint16(b[4:6]) }

// IBSubnet is what two InfiniBand ports of one subnet have in common.
func (g GID) IBSubnet() uint16 { b := rdma.GIDBytes(g.Addr); return binary.BigEndian.Uint16(b[6:8]) }

// Reach says how a local GID gets to a remote one; more is better.
type Reach uint8

const (
	Unreachable  Reach = iota
	SameLinkOnly       // both link-local: right only if one cable or switch joins them
	Routed             // different subnets, and addresses that can be routed
	Direct             // one subnet
)

func (r Reach) String() string {
	return [...]string{"unreachable", "link-local", "routed", "direct"}[r&3]
}

// Reaches compares two GIDs. A link-local address never leaves its link, and
// versions of RoCE do not understand one another.
func (g GID) Reaches(remote GID) Reach {
	if g.Type != remote.Type {
		return Unreachable
	}
	if g.Type == rdma.GIDInfiniBand {
		switch {
		case g.IBSubnet() == remote.IBSubnet():
			return Direct
		case remote.FLID() != 0:
			return Routed
		}
		return Unreachable
	}
	a, b := g.Addr.Unmap(), remote.Addr.Unmap()
	switch {
	case a.Is4() != b.Is4():
		return Unreachable
	case g.linkLocal() && remote.linkLocal():
		return SameLinkOnly
	case g.linkLocal() || remote.linkLocal():
		return Unreachable
	case g.subnet().Contains(b) && remote.subnet().Contains(a):
		return Direct
	case g.Type == rdma.GIDRoCEv2:
		return Routed
	}
	return Unreachable // RoCE v1 has no IP header to route by
}

// Pair picks the pair with the best reach, among equals the one that both
// sides prefer: lists are best first.
func Pair(local, remote []GID) (l, r GID, reach Reach) {
	for _, a := range local {
		for _, b := range remote {
			if got := a.Reaches(b); got > reach {
				l, r, reach = a, b, got
			}
		}
	}
	return l, r, reach
}

// PrefixOf is the GID as an address with its subnet.
func PrefixOf(g GID) netip.Prefix { return netip.PrefixFrom(g.Addr.Unmap(), g.Bits) }
