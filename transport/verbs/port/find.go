package port

import (
	"slices"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/hca"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
	"weft/transport/verbs/mr"
)

// Choice decides which ports are used, and from which addresses.
type Choice struct {
	HCA   hca.Filter
	Rules *gid.Rules
	Links []machine.Link // of this machine
}

// LeftOut is why a port is not used that could be.
const LeftOut = "NCCL_IB_HCA leaves it out"

// Find makes the device of a card's port, or says why the port is not used.
func Find(by *Choice, c *card.Card, domains *mr.Domains, number uint8) (*Device, string) {
	attr, errno := c.Lib.QueryPort(c.Context(), number)
	if errno != 0 {
		report.Say(c.Lib.Log, fail.Call("ibv_query_port", c.Name, errno, "port %d", number))
		return nil, "cannot be queried"
	}
	if attr.State != ibv.PortActive {
		return nil, "not active"
	}
	if attr.LinkLayer != ibv.LinkInfiniBand && attr.LinkLayer != ibv.LinkEthernet {
		return nil, "unknown link layer"
	}
	rail, plane, ok := by.HCA.Takes(c.Name, int(number))
	if !ok {
		return nil, LeftOut
	}
	gids, why, err := chooseGIDs(c, c.Context(), by.Rules, number, &attr, by.Links)
	if err != nil {
		report.Say(c.Lib.Log, err)
		return nil, "no usable GID"
	}
	if _, _, err := partition(c, number, attr.PKeyTableLen); err != nil {
		report.Say(c.Lib.Log, err)
		return nil, "not in the partition"
	}
	d := &Device{
		Device: rdma.Device{
			Name: c.Name, GUID: c.Attr.SystemGUID, SpeedMbps: speed(c, number, &attr), MaxComms: c.Attr.MaxQP, MaxRecvs: rdma.MaxRecvs,
			MTU: ibv.MTUBytes(attr.ActiveMTU), RailID: rail, PlaneID: plane,
		},
		InfiniBand: attr.LinkLayer == ibv.LinkInfiniBand, NIC: c.Name,
		card: c, domains: domains, rules: by.Rules, number: number, gidWhy: why,
	}
	d.function, d.PCIPath = c.Lib.Host.PCIPaths(c.Sysfs, c.Lib.Knobs.Int(knob.IBMergeVFs) != 0)
	d.now = &state{gids: gids, port: attr}
	if !d.InfiniBand {
		d.addresses(gids, by.Links)
	}
	return d, ""
}

// addresses are what the port's GIDs stand for in IP's terms.
func (d *Device) addresses(gids []gid.GID, links []machine.Link) {
	for _, l := range links {
		if l.Name == gids[0].NetDev {
			d.IfIndex = l.Index
		}
	}
	for _, g := range gids {
		if p := gid.PrefixOf(g); !slices.Contains(d.Addrs, p) {
			d.Addrs = append(d.Addrs, p)
		}
	}
}

// Views are the devices that a port appears as: itself, its card's data-direct
// path to GPU memory, or both.
func (d *Device) Views(both bool) []*Device {
	if !d.domains.TakesDirect() {
		return []*Device{d}
	}
	t := &Device{Device: d.Device, InfiniBand: d.InfiniBand, NIC: d.NIC, card: d.card, domains: d.domains, rules: d.rules,
		number: d.number, function: d.function, gidWhy: d.gidWhy, direct: true, now: d.now}
	t.Name, t.PCIPath, t.Flush = d.Name+"_dma", d.card.DirectPath, true
	if both {
		return []*Device{d, t}
	}
	return []*Device{t}
}
