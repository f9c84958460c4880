package transport

import (
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/wire"
)

// offersMade bounds a connect's offers: for each route, queue pairs of a closed
// connection, and new ones.
const offersMade = 2 * route.Trials

// route lists the pairs for a comm from dev to the peer's devices peerAsked.
func (c *Core) route(dev *device.Device, devices []wire.Device, peerAsked []uint16, bad map[[2]uint16]bool) []route.Pair {
	var local, peer []route.Port
	for _, d := range c.devices.Found() {
		if d.Verbs != nil && d.Verbs.Down() == "" {
			local = append(local, route.Port{Index: uint16(d.Index), Speed: d.SpeedMbps, GIDs: d.Verbs.GIDs(), Short: !d.Pointers.Has(dev.Pointers)})
		}
	}
	for _, d := range devices {
		if d.Kind != wire.LaneVerbs {
			continue
		}
		p := route.Port{Index: d.Index, Speed: int(d.SpeedMbps)}
		for _, g := range d.GIDs {
			p.GIDs = append(p.GIDs, route.FromWire(g))
		}
		peer = append(peer, p)
	}
	hasRoute := func(p *route.Choice) bool { return c.devices.Port(p.Local.Index).RouteTo(p.GID, p.PeerGID) }
	var out []route.Pair
	for _, p := range route.Choose(local, peer, dev.Indices(), peerAsked, bad, hasRoute) {
		out = append(out, route.Pair{Local: c.devices.Port(p.Local.Index), GID: p.GID, LocalIndex: p.Local.Index,
			PeerIndex: p.Peer.Index, PeerGID: p.PeerGID, Reach: p.Reach, Speed: p.Local.Speed, PeerSpeed: p.Peer.Speed})
	}
	return out
}

// lanes is what is known of a comm whose lane i is to run over pairs[at[i]].
func (x *Context) lanes(dev *device.Device, kind fastpath.Kind, peer string, pairs []route.Pair, at []int) lanes.Options {
	return lanes.Options{Log: x.opts.Log, Cuts: x.opts.Cuts, NetEvents: x.opts.NetEvents(), Device: dev, Kind: kind, Peer: peer, Cookie: comms.Reserve(),
		Pairs: pairs, PairAt: at, Tuning: x.tune(kind, pairs, len(at))}
}

// tune decides how a comm of so many lanes uses them, before anything of it is made.
func (x *Context) tune(kind fastpath.Kind, pairs []route.Pair, lanes int) route.Tuning {
	return route.Tune(x.core.cfg.Knobs, x.opts.Hints(), kind, pairs, lanes)
}

// sayRails says once for a connection which of its pairs leave their rail, if
// NCCL_IB_WARN_RAIL_LOCAL asks for it.
func (k *connector) sayRails(peer string, pairs []route.Pair, devices []wire.Device) {
	if k.core.cfg.Knobs.Int(knob.IBWarnRailLocal) == 0 {
		return
	}
	if mixed := route.OffRail(pairs, devices); len(mixed) > 0 {
		k.ctx.opts.Log.Info(report.Net, "%s -> %s leaves its rail: %s; NCCL_IB_WARN_RAIL_LOCAL=0 hides this", k.dev.Name, peer, strings.Join(mixed, ", "))
	}
}
