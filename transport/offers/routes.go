package offers

import (
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/wire"
)

// route lists the pairs for a comm from dev to the peer's devices peerAsked.
func (w *Way) route(dev *device.Device, devices []wire.Device, peerAsked []uint16, bad map[[2]uint16]bool) []route.Pair {
	var local, peer []route.Port
	for _, d := range w.Devices.Found() {
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
	hasRoute := func(p *route.Choice) bool { return w.Devices.Port(p.Local.Index).RouteTo(p.GID, p.PeerGID) }
	var out []route.Pair
	for _, p := range route.Choose(local, peer, dev.Indices(), peerAsked, bad, hasRoute) {
		out = append(out, route.Pair{Local: w.Devices.Port(p.Local.Index), GID: p.GID, LocalIndex: p.Local.Index,
			PeerIndex: p.Peer.Index, PeerGID: p.PeerGID, Reach: p.Reach, Speed: p.Local.Speed, PeerSpeed: p.Peer.Speed})
	}
	return out
}

// options is what is known of a comm whose lane i is to run over pairs[at[i]].
func (w *Way) options(f *carrier.For, pairs []route.Pair, at []int) lanes.Options {
	return lanes.Options{For: *f, Pairs: pairs, PairAt: at, Tuning: w.tune(f, pairs, len(at))}
}

// tune decides how a comm of so many lanes uses them, before anything of it is made.
func (w *Way) tune(f *carrier.For, pairs []route.Pair, lanes int) route.Tuning {
	return route.Tune(w.Knobs, f.Hints(), f.Kind, pairs, lanes)
}

// sayRails says once for a connection which of its pairs leave their rail, if
// NCCL_IB_WARN_RAIL_LOCAL asks for it.
func (c *caller) sayRails(pairs []route.Pair) {
	if c.way.Knobs.Int(knob.IBWarnRailLocal) == 0 {
		return
	}
	if mixed := route.OffRail(pairs, c.Session.Devices); len(mixed) > 0 {
		c.Log.Info(report.Net, "%s -> %s leaves its rail: %s; NCCL_IB_WARN_RAIL_LOCAL=0 hides this", c.Device.Name, c.Peer, strings.Join(mixed, ", "))
	}
}
