package transport

import (
	"slices"

	"weft/transport/verbs"
	"weft/transport/wire"
)

// verbsPair is two ports between which a comm may run. The indices are those of
// the two inventories.
type verbsPair struct {
	local                 *verbs.Device
	gid                   verbs.GID
	localIndex, peerIndex uint16
	peerGID               verbs.GID
	reach                 verbs.Reach
}

// port is a port of either side, as far as the choice of a pair needs it.
type port struct {
	index uint16
	speed int
	gids  []verbs.GID // best first
}

// choice is two ports in the order in which they are worth a trial.
type choice struct {
	local, peer   port
	gid, peerGID  verbs.GID
	reach         verbs.Reach
	asked, nearly bool // both are what the hosts asked for; one is
}

// pairsTried bounds the trials of one connect: each that fails costs the wait for a proof.
const pairsTried = 3

// choosePairs orders the pairs of ports that may reach each other: first the
// one that both hosts asked for, if it shares a subnet, then those that do,
// fastest first, at last the one asked for if routers may join it. Ports that
// only a link-local address joins are left to TCP: nothing tells one link from another.
func choosePairs(local, peer []port, asked, peerAsked uint16) []choice {
	var all []choice
	for _, l := range local {
		for _, p := range peer {
			c := choice{local: l, peer: p, asked: l.index == asked && p.index == peerAsked, nearly: l.index == asked || p.index == peerAsked}
			c.gid, c.peerGID, c.reach = verbs.PairGIDs(l.gids, p.gids)
			if c.reach == verbs.Direct || (c.reach == verbs.Routed && c.asked) {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return b.rank() - a.rank() })
	return all[:min(len(all), pairsTried)]
}

// rank is higher for better; speeds are below 2^40 Mb/s.
func (c *choice) rank() int {
	r := min(c.local.speed, c.peer.speed) << 1
	if c.nearly {
		r++
	}
	switch {
	case c.reach == verbs.Direct && c.asked:
		return r + 1<<60
	case c.reach == verbs.Direct:
		return r + 1<<50
	}
	return r
}

// verbsPairs lists the pairs to try from dev to the peer's device of index peerAsked.
func (c *Core) verbsPairs(dev *Device, devices []wire.Device, peerAsked uint16) []verbsPair {
	if dev.Verbs == nil {
		return nil
	}
	var local, peer []port
	for i, d := range c.cfg.Devices {
		if d.Verbs != nil && d.Verbs.Down() == "" {
			local = append(local, port{uint16(i), d.SpeedMbps, d.Verbs.GIDs()})
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
	var out []verbsPair
	for _, p := range choosePairs(local, peer, uint16(dev.Index), peerAsked) {
		out = append(out, verbsPair{local: c.cfg.Devices[p.local.index].Verbs, gid: p.gid, localIndex: p.local.index,
			peerIndex: p.peer.index, peerGID: p.peerGID, reach: p.reach})
	}
	return out
}
