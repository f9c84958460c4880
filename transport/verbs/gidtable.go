package verbs

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// readGIDs lists the usable entries of a port's table. An entry that cannot be
// read, is empty, or whose network device is down or elsewhere is absent. The
// error is for a table that cannot be read at all.
func (p *Provider) readGIDs(a *adapter, port uint8, attr *ibv.PortAttr, links []machine.Link) ([]gid.GID, error) {
	entries, errno := p.lib.QueryGIDTable(a.context, max(attr.GIDTableLen, 1)*max(int(a.attr.Ports), 1))
	if errno != 0 {
		entries = p.readGIDsOneByOne(a, port, attr, links)
		if len(entries) == 0 && !p.lib.Lacks["ibv_query_gid_table"] {
			return nil, fail("ibv_query_gid_table", a.name, errno, "port %d, whose entries one by one are none", port)
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
		} else if !p.placeGID(&g, e.IfIndex, links) {
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

// chooseGID reads the table and orders it.
func (p *Provider) chooseGID(a *adapter, port uint8, attr *ibv.PortAttr, links []machine.Link) ([]gid.GID, string, error) {
	all, err := p.readGIDs(a, port, attr, links)
	if err != nil {
		return nil, "", err
	}
	return p.rules.Choose(a.name, port, attr.LinkLayer, all)
}

// placeGID finds the network device behind a RoCE GID and with it the subnet;
// false: the device is down, or in another network namespace.
func (p *Provider) placeGID(g *gid.GID, ifIndex int, links []machine.Link) bool {
	addr := g.Addr.Unmap()
	if !(addr.IsGlobalUnicast() || addr.IsLinkLocalUnicast() || addr.IsLoopback()) {
		return false
	}
	if addr.Is4() {
		g.Bits = int(p.knobs.Int(knob.IBSubnetPrefixLen))
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
func (p *Provider) readGIDsOneByOne(a *adapter, port uint8, attr *ibv.PortAttr, links []machine.Link) []ibv.GIDEntry {
	var entries []ibv.GIDEntry
	attrs := fmt.Sprintf("%s/ports/%d/gid_attrs", a.sysfs, port)
	for i := range attr.GIDTableLen {
		gid, errno := p.lib.QueryGID(a.context, port, i)
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

// RefreshGIDs reads the port's table again and chooses anew: an address that
// changed while the link was down is no longer the one to connect from.
func (d *Device) RefreshGIDs() error {
	p, a, n := d.provider, d.adapter, d.asks()
	links, err := p.host.Links()
	if err != nil {
		return err
	}
	a.life.RLock()
	defer a.life.RUnlock()
	attr, errno := p.lib.QueryPort(a.context, d.portNum)
	if errno != 0 {
		return fail("ibv_query_port", d.Name, errno, "port %d", d.portNum)
	}
	gids, why, err := p.chooseGID(a, d.portNum, &attr, links)
	if err != nil {
		return err
	}
	d.now.Lock()
	defer d.now.Unlock()
	if n < d.now.gidsOf {
		return nil // another asked later
	}
	if len(d.now.gids) == 0 || d.now.gids[0] != gids[0] {
		p.log.Info(report.Net, "%s port %d uses GID %v: %s", d.Name, d.portNum, gids[0], why)
	}
	d.now.gids, d.now.port, d.now.gidsOf = gids, attr, n
	return nil
}
