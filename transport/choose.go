package transport

import (
	"cmp"
	"slices"

	"weft/transport/verbs"
	"weft/transport/wire"
)

// verbsPair is two ports between which lanes may run. The indices are those of
// the two inventories.
type verbsPair struct {
	local                 *verbs.Device
	gid                   verbs.GID
	localIndex, peerIndex uint16
	peerGID               verbs.GID
	reach                 verbs.Reach
	speed, peerSpeed      int // Mb/s, of the two ports; 0: not known
	mtu                   int // what its path carries, in bytes, if less than both ports do; 0: nothing is known
}

func (p *verbsPair) key() [2]uint16 { return [2]uint16{p.localIndex, p.peerIndex} }

// port is a port of either side, as far as the choice of a route needs it.
type port struct {
	index uint16
	speed int
	gids  []verbs.GID // best first
	short bool        // it takes less than the memory that the asked device takes
}

// choice is two ports that may reach each other.
type choice struct {
	local, peer  port
	gid, peerGID verbs.GID
	reach        verbs.Reach
}

func (c *choice) key() [2]uint16 { return [2]uint16{c.local.index, c.peer.index} }
func (c *choice) speed() int     { return min(c.local.speed, c.peer.speed) }

// routesTried bounds the trials of one connect: each that fails costs the wait for a proof.
const routesTried = 3

// offersMade bounds a connect's offers: for each route, queue pairs of a closed
// connection, and new ones.
const offersMade = 2 * routesTried

// chooseRoute picks the pairs of ports that a comm runs over, in turn: those of
// the devices that both hosts asked for that share subnets; else those asked for
// that routers may join, as on a routed fabric; else the fastest pair of any ports
// that shares a subnet, of those that take the memory that the asked device takes
// if there are any. Where another pair shares a subnet and this host has no route
// to the asked one, as between hosts that are cabled directly, that comes last.
// Ports that only a link-local address joins are left to TCP: nothing tells one
// link from another. Pairs in bad have been tried.
func chooseRoute(local, peer []port, asked, peerAsked []uint16, bad map[[2]uint16]bool, hasRoute func(*choice) bool) []choice {
	var ours, routed, others []choice
	for _, l := range local {
		for _, p := range peer {
			c := choice{local: l, peer: p}
			c.gid, c.peerGID, c.reach = verbs.PairGIDs(l.gids, p.gids)
			mine, theirs := slices.Contains(asked, l.index), slices.Contains(peerAsked, p.index)
			switch {
			case bad[c.key()]:
			case c.reach == verbs.Direct && mine && theirs:
				ours = append(ours, c)
			case c.reach == verbs.Direct:
				others = append(others, c)
			case c.reach == verbs.Routed && mine && theirs:
				routed = append(routed, c)
			}
		}
	}
	switch {
	case len(ours) > 0:
		return interleave(ours, asked, peerAsked)
	case len(others) > 0:
		likely := slices.DeleteFunc(routed, func(c choice) bool { return !hasRoute(&c) })
		if len(likely) > 0 {
			return interleave(likely, asked, peerAsked)
		}
		nearly := func(c *choice) int { // one end is what its host asked for
			if slices.Contains(asked, c.local.index) || slices.Contains(peerAsked, c.peer.index) {
				return 1
			}
			return 0
		}
		full := func(c *choice) int { // the host registers what the asked device's properties name
			if c.local.short {
				return 0
			}
			return 1
		}
		return []choice{slices.MaxFunc(others, func(a, b choice) int {
			return cmp.Or(full(&a)-full(&b), a.speed()-b.speed(), nearly(&a)-nearly(&b))
		})}
	}
	return interleave(routed, asked, peerAsked)
}

// interleave gives every port of the side that has more of them one pair, and
// spreads these over the other side's; the i-th port meets the i-th if it can.
func interleave(all []choice, asked, peerAsked []uint16) (out []choice) {
	here, there := map[uint16]int{}, map[uint16]int{}
	for i := range max(len(asked), len(peerAsked)) {
		if len(all) == 0 {
			break
		}
		cost := func(c *choice) int {
			n := 2 * (here[c.local.index] + there[c.peer.index])
			if c.local.index != asked[i%len(asked)] || c.peer.index != peerAsked[i%len(peerAsked)] {
				n++
			}
			return n
		}
		best := slices.MinFunc(all, func(a, b choice) int { return cmp.Or(cost(&a)-cost(&b), b.speed()-a.speed()) })
		if here[best.local.index] > 0 && there[best.peer.index] > 0 {
			break // both have a pair already
		}
		here[best.local.index]++
		there[best.peer.index]++
		out = append(out, best)
		all = slices.DeleteFunc(slices.Clone(all), func(c choice) bool { return c.key() == best.key() })
	}
	return out
}

// route lists the pairs for a comm from dev to the peer's devices peerAsked.
func (c *Core) route(dev *Device, devices []wire.Device, peerAsked []uint16, bad map[[2]uint16]bool) []verbsPair {
	var local, peer []port
	for _, d := range c.cfg.Devices {
		if d.Verbs != nil && d.Verbs.Down() == "" {
			local = append(local, port{uint16(d.Index), d.SpeedMbps, d.Verbs.GIDs(), !d.Pointers.Has(dev.Pointers)})
		}
	}
	for _, d := range devices {
		if d.Kind != wire.LaneVerbs {
			continue
		}
		p := port{index: d.Index, speed: int(d.SpeedMbps)}
		for _, g := range d.GIDs {
			p.gids = append(p.gids, verbsGID(g))
		}
		peer = append(peer, p)
	}
	hasRoute := func(p *choice) bool { return c.port(p.local.index).RouteTo(p.gid, p.peerGID) }
	var out []verbsPair
	for _, p := range chooseRoute(local, peer, dev.indices(), peerAsked, bad, hasRoute) {
		out = append(out, verbsPair{local: c.port(p.local.index), gid: p.gid, localIndex: p.local.index,
			peerIndex: p.peer.index, peerGID: p.peerGID, reach: p.reach, speed: p.local.speed, peerSpeed: p.peer.speed})
	}
	return out
}

// port is the port behind an index of this host's inventory; nil: none.
func (c *Core) port(index uint16) *verbs.Device {
	if int(index) >= len(c.cfg.Devices) {
		return nil
	}
	return c.cfg.Devices[index].Verbs
}
