package port

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weft/internal/knob"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// readGIDs lists the usable entries of a port's table. An entry that cannot be
// read, is empty, or whose network device is down or elsewhere is absent. The
// error is for a table that cannot be read at all.
func readGIDs(c *card.Card, context ibv.Object, port uint8, attr *ibv.PortAttr, links []machine.Link) ([]gid.GID, error) {
	entries, errno := c.Lib.QueryGIDTable(context, max(attr.GIDTableLen, 1)*max(int(c.Attr.Ports), 1))
	if errno != 0 {
		entries = readGIDsOneByOne(c, context, port, attr, links)
		if len(entries) == 0 && !c.Lib.Lacks["ibv_query_gid_table"] {
			return nil, fail.Call("ibv_query_gid_table", c.Name, errno, "port %d, whose entries one by one are none", port)
		}
	}
	var all []gid.GID
	for _, e := range entries {
		if e.Port != port || e.GID == ([16]byte{}) || e.Index > 255 {
			continue // an address handle names the entry in 8 bits
		}
		g := gid.GID{Addr: netip.AddrFrom16(e.GID), Index: e.Index, Type: e.Kind, Bits: 64}
		if attr.LinkLayer == ibv.LinkInfiniBand {
			g.Type = ibv.GIDInfiniBand
		} else if !place(&g, e.IfIndex, links, int(c.Lib.Knobs.Int(knob.IBSubnetPrefixLen))) {
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

// chooseGIDs reads the table and orders it, best first, with the reason.
func chooseGIDs(c *card.Card, context ibv.Object, rules *gid.Rules, port uint8, attr *ibv.PortAttr, links []machine.Link) ([]gid.GID, string, error) {
	all, err := readGIDs(c, context, port, attr, links)
	if err != nil {
		return nil, "", err
	}
	return rules.Choose(c.Name, port, attr.LinkLayer, all)
}

// place finds the network device behind a RoCE GID and with it the subnet, which is
// of bits where an IPv4 address has no such device; false: the device is down, or in
// another network namespace.
func place(g *gid.GID, ifIndex int, links []machine.Link, bits int) bool {
	addr := g.Addr.Unmap()
	if !(addr.IsGlobalUnicast() || addr.IsLinkLocalUnicast() || addr.IsLoopback()) {
		return false
	}
	if addr.Is4() {
		g.Bits = bits
	}
	if ifIndex == 0 {
		return true
	}
	for _, l := range links {
		if l.Index != ifIndex {
			continue
		}
		g.NetDev = l.Name
		for _, own := range l.Addrs {
			if own.Addr() == addr {
				g.Bits = own.Bits()
			}
		}
		return l.Up
	}
	return false
}

// readGIDsOneByOne serves libraries older than ibv_query_gid_table, whose
// entries sysfs completes.
func readGIDsOneByOne(c *card.Card, context ibv.Object, port uint8, attr *ibv.PortAttr, links []machine.Link) []ibv.GIDEntry {
	var entries []ibv.GIDEntry
	attrs := fmt.Sprintf("%s/ports/%d/gid_attrs", c.Sysfs, port)
	for i := range attr.GIDTableLen {
		gid, errno := c.Lib.QueryGID(context, port, i)
		if errno != 0 || gid == ([16]byte{}) {
			continue
		}
		e := ibv.GIDEntry{Port: port, GID: gid, Index: i}
		if attr.LinkLayer != ibv.LinkInfiniBand {
			kind, err := machine.Read(attrs, "types", strconv.Itoa(i))
			if err != nil {
				continue // EINVAL: the entry belongs to another network namespace
			}
			e.Kind = ibv.GIDRoCEv1
			if strings.HasPrefix(kind, "RoCE v2") {
				e.Kind = ibv.GIDRoCEv2
			}
			if name, err := machine.Read(attrs, "ndevs", strconv.Itoa(i)); err == nil {
				e.IfIndex = -1 // of no link, unless it is found
				for _, l := range links {
					if l.Name == name {
						e.IfIndex = l.Index
					}
				}
			}
		}
		entries = append(entries, e)
	}
	return entries
}
