package verbs

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// GID is one usable entry of a port's GID table.
type GID struct {
	Addr   netip.Addr // 16 bytes; IPv4-mapped for an IPv4 address
	Index  int
	Type   ibv.GIDType
	NetDev string // network device behind it; "" when it is not visible here
	Bits   int    // length of its subnet
}

// Subnet is the subnet that the address lies in.
func (g GID) Subnet() netip.Prefix { return netip.PrefixFrom(g.Addr.Unmap(), g.Bits).Masked() }

// LinkLocal reports an address that means something on its own link only.
// InfiniBand's default subnet looks like one and is none.
func (g GID) LinkLocal() bool {
	return g.Type != ibv.GIDInfiniBand && g.Addr.Unmap().IsLinkLocalUnicast()
}

func (g GID) String() string {
	s := fmt.Sprintf("%s (index %d, %s", g.Addr.Unmap(), g.Index, g.Type)
	if g.NetDev != "" {
		s += ", " + g.NetDev
	}
	return s + ")"
}

// flid is the local identifier that routes to another InfiniBand subnet; 0: none.
func (g GID) flid() uint16 { b := ibv.GIDBytes(g.Addr); return binary.BigEndian.Uint16(b[4:6]) }

// ibSubnet is what two InfiniBand ports of one subnet have in common.
func (g GID) ibSubnet() uint16 { b := ibv.GIDBytes(g.Addr); return binary.BigEndian.Uint16(b[6:8]) }

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
	if g.Type == ibv.GIDInfiniBand {
		switch {
		case g.ibSubnet() == remote.ibSubnet():
			return Direct
		case remote.flid() != 0:
			return Routed
		}
		return Unreachable
	}
	a, b := g.Addr.Unmap(), remote.Addr.Unmap()
	switch {
	case a.Is4() != b.Is4():
		return Unreachable
	case g.LinkLocal() && remote.LinkLocal():
		return SameLinkOnly
	case g.LinkLocal() || remote.LinkLocal():
		return Unreachable
	case g.Subnet().Contains(b) && remote.Subnet().Contains(a):
		return Direct
	case g.Type == ibv.GIDRoCEv2:
		return Routed
	}
	return Unreachable // RoCE v1 has no IP header to route by
}

// PairGIDs picks the pair with the best reach, among equals the one that both
// sides prefer: lists are best first.
func PairGIDs(local, remote []GID) (l, r GID, reach Reach) {
	for _, a := range local {
		for _, b := range remote {
			if got := a.Reaches(b); got > reach {
				l, r, reach = a, b, got
			}
		}
	}
	return l, r, reach
}

// readGIDs lists the usable entries of a port's table. An entry that cannot be
// read, is empty, or whose network device is down or elsewhere is absent. The
// error is for a table that cannot be read at all.
func (p *Provider) readGIDs(a *adapter, port uint8, attr *ibv.PortAttr, links []Link) ([]GID, error) {
	entries, errno := p.lib.QueryGIDTable(a.context, max(attr.GIDTableLen, 1)*max(int(a.attr.Ports), 1))
	if errno != 0 {
		entries = p.readGIDsOneByOne(a, port, attr, links)
		if len(entries) == 0 && !p.lib.Lacks["ibv_query_gid_table"] {
			return nil, fail("ibv_query_gid_table", a.name, errno, "port %d, whose entries one by one are none", port)
		}
	}
	var all []GID
	for _, e := range entries {
		if e.Port != port || e.GID == ([16]byte{}) || e.Index > 255 {
			continue // an address handle names the entry in 8 bits
		}
		g := GID{Addr: netip.AddrFrom16(e.GID), Index: e.Index, Type: e.Kind, Bits: 64}
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
func (p *Provider) chooseGID(a *adapter, port uint8, attr *ibv.PortAttr, links []Link) ([]GID, string, error) {
	all, err := p.readGIDs(a, port, attr, links)
	if err != nil {
		return nil, "", err
	}
	return p.rules.choose(a.name, port, attr.LinkLayer, all)
}

// placeGID finds the network device behind a RoCE GID and with it the subnet;
// false: the device is down, or in another network namespace.
func (p *Provider) placeGID(g *GID, ifIndex int, links []Link) bool {
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
func (p *Provider) readGIDsOneByOne(a *adapter, port uint8, attr *ibv.PortAttr, links []Link) []ibv.GIDEntry {
	var entries []ibv.GIDEntry
	attrs := fmt.Sprintf("%s/ports/%d/gid_attrs", a.sysfs, port)
	for i := range attr.GIDTableLen {
		gid, errno := p.lib.QueryGID(a.context, port, i)
		if errno != 0 || gid == ([16]byte{}) {
			continue
		}
		e := ibv.GIDEntry{Port: port, GID: gid, Index: i}
		if attr.LinkLayer != ibv.LinkInfiniBand {
			kind, err := read(attrs, "types", strconv.Itoa(i))
			if err != nil {
				continue // EINVAL: the entry belongs to another network namespace
			}
			e.Kind = ibv.GIDRoCEv1
			if strings.HasPrefix(kind, "RoCE v2") {
				e.Kind = ibv.GIDRoCEv2
			}
			if name, err := read(attrs, "ndevs", strconv.Itoa(i)); err == nil {
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

// prefixOf is the GID as an address with its subnet.
func prefixOf(g GID) netip.Prefix { return netip.PrefixFrom(g.Addr.Unmap(), g.Bits) }
