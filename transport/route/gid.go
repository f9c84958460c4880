package route

import (
	"net/netip"

	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// Link layers as the inventory names them.
const (
	LinkEthernet   = 1
	linkInfiniBand = 2
)

// LinkOf is the link layer of a port.
func LinkOf(v *port.Device) uint8 {
	if v.InfiniBand {
		return linkInfiniBand
	}
	return LinkEthernet
}

// ToWire is g as it travels.
func ToWire(g gid.GID) wire.PortGID {
	return wire.PortGID{Addr: g.Addr.As16(), Type: uint8(g.Type), Bits: uint8(g.Bits)}
}

// FromWire is a peer's GID as its path is judged.
func FromWire(g wire.PortGID) gid.GID {
	return gid.GID{Addr: netip.AddrFrom16(g.Addr), Type: ibv.GIDType(g.Type), Bits: int(g.Bits)}
}
