package transport

import (
	"fmt"
	"net/netip"

	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// inventory lists all devices for the peer's choice of a path: first what the
// host sees, so that an index means the same in hellos, then the interfaces
// that RDMA devices hide from it.
func (c *Core) inventory() wire.Inventory {
	var inv wire.Inventory
	add := func(d *rdma.Device, kind, link uint8, mtu int, gids []verbs.GID) {
		w := wire.Device{Index: uint16(len(inv.Devices)), Port: uint8(d.Port), Kind: kind, Link: link, MTU: uint32(mtu),
			SpeedMbps: uint32(d.SpeedMbps), GUID: d.GUID, Rail: d.RailID, Plane: d.PlaneID, Name: d.Name}
		for _, p := range d.Addrs {
			w.Addrs = append(w.Addrs, wire.Endpoint{Addr: p.Addr().Unmap().WithZone(""), Prefix: uint8(p.Bits())})
		}
		for _, g := range gids {
			w.GIDs = append(w.GIDs, portGID(g))
		}
		inv.Devices = append(inv.Devices, w)
	}
	tcpToo := c.cfg.Interfaces
	for _, d := range c.cfg.Devices {
		if v := d.Verbs; v != nil {
			add(&d.Device, wire.LaneVerbs, linkOf(v), v.PathMTU(), v.GIDs())
			continue
		}
		tcpToo = nil // they are the list
		add(&d.Device, wire.LaneTCP, linkEthernet, d.MTU, nil)
	}
	for _, d := range tcpToo {
		add(&d.Device, wire.LaneTCP, linkEthernet, d.MTU, nil)
	}
	return inv
}

// Link layers as the inventory names them.
const (
	linkEthernet   = 1
	linkInfiniBand = 2
)

func linkOf(v *verbs.Device) uint8 {
	if v.InfiniBand {
		return linkInfiniBand
	}
	return linkEthernet
}

// portGID is g as it travels.
func portGID(g verbs.GID) wire.PortGID {
	return wire.PortGID{Addr: g.Addr.As16(), Type: uint8(g.Type), Bits: uint8(g.Bits)}
}

// verbsGID is a peer's GID as its path is judged.
func verbsGID(g wire.PortGID) verbs.GID {
	return verbs.GID{Addr: netip.AddrFrom16(g.Addr), Type: verbs.GIDType(g.Type), Bits: int(g.Bits)}
}

// readInventory reads the frames of one inventory, a bounded number, from the
// first on, and the frame behind them.
func readInventory(rd *wire.Reader, frame []byte) (all []wire.Device, next []byte, err error) {
	for more := true; more; {
		m, err := wire.ParseInventory(frame)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, m.Devices...)
		more = m.Flags&wire.FlagMore != 0
		if len(all) > wire.MaxDevices || more && len(m.Devices) == 0 {
			return nil, nil, fmt.Errorf("inventory of more than %d devices: %w", wire.MaxDevices, wire.ErrMalformed)
		}
		if frame, err = rd.Next(); err != nil {
			return nil, nil, err
		}
	}
	return all, frame, nil
}
