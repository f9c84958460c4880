package device

import (
	"weft/transport/rdma"
	"weft/transport/route"
	"weft/transport/tcp"
	"weft/transport/verbs/gid"
	"weft/transport/wire"
)

// Inventory lists all devices for the peer's choice of a path: first what the
// host sees, so that an index means the same in hellos, then the interfaces
// that RDMA devices hide from it.
func (l *List) Inventory(interfaces []*tcp.Device) wire.Inventory {
	var inv wire.Inventory
	add := func(d *rdma.Device, kind, link uint8, mtu int, gids []gid.GID) {
		w := wire.Device{Index: uint16(len(inv.Devices)), Port: uint8(d.Port), Kind: kind, Link: link, MTU: uint32(mtu),
			SpeedMbps: uint32(d.SpeedMbps), GUID: d.GUID, Rail: d.RailID, Plane: d.PlaneID, Name: d.Name}
		for _, p := range d.Addrs {
			w.Addrs = append(w.Addrs, wire.Endpoint{Addr: p.Addr().Unmap().WithZone(""), Prefix: uint8(p.Bits())})
		}
		for _, g := range gids {
			w.GIDs = append(w.GIDs, route.ToWire(g))
		}
		inv.Devices = append(inv.Devices, w)
	}
	tcpToo := interfaces
	for _, d := range l.found {
		if v := d.Verbs; v != nil {
			add(&d.Device, wire.LaneVerbs, route.LinkOf(v), v.PathMTU(), v.GIDs())
			continue
		}
		tcpToo = nil // they are the list
		add(&d.Device, wire.LaneTCP, route.LinkEthernet, d.MTU, nil)
	}
	for _, d := range tcpToo {
		add(&d.Device, wire.LaneTCP, route.LinkEthernet, d.MTU, nil)
	}
	return inv
}
