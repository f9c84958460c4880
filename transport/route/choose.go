package route

import (
	"cmp"
	"slices"

	"weft/transport/verbs/gid"
)

// Port is a port of either side, as far as the choice of a route needs it. Speeds are in Mb/s.
type Port struct {
	Index uint16
	Speed int
	GIDs  []gid.GID // best first
	Short bool      // it takes less than the memory that the asked device takes
}

// Choice is two ports that may reach each other.
type Choice struct {
	Local, Peer  Port
	GID, PeerGID gid.GID
	Reach        gid.Reach
}

// Key tells choices apart, as Pair's does.
func (c *Choice) Key() [2]uint16 { return [2]uint16{c.Local.Index, c.Peer.Index} }
func (c *Choice) speed() int     { return min(c.Local.Speed, c.Peer.Speed) }

// Trials bounds the trials of one connect: each that fails costs the wait for a proof.
const Trials = 3

// Choose picks the pairs of ports that a comm runs over, in turn: those of
// the devices that both hosts asked for that share subnets; else those asked for
// that routers may join, as on a routed fabric; else the fastest pair of any ports
// that shares a subnet, of those that take the memory that the asked device takes
// if there are any. Where another pair shares a subnet and this host has no route
// to the asked one, as between hosts that are cabled directly, that comes last.
// Ports that only a link-local address joins are left to TCP: nothing tells one
// link from another. Pairs in bad have been tried.
func Choose(local, peer []Port, asked, peerAsked []uint16, bad map[[2]uint16]bool, hasRoute func(*Choice) bool) []Choice {
	var ours, routed, others []Choice
	for _, l := range local {
		for _, p := range peer {
			c := Choice{Local: l, Peer: p}
			c.GID, c.PeerGID, c.Reach = gid.Pair(l.GIDs, p.GIDs)
			mine, theirs := slices.Contains(asked, l.Index), slices.Contains(peerAsked, p.Index)
			switch {
			case bad[c.Key()]:
			case c.Reach == gid.Direct && mine && theirs:
				ours = append(ours, c)
			case c.Reach == gid.Direct:
				others = append(others, c)
			case c.Reach == gid.Routed && mine && theirs:
				routed = append(routed, c)
			}
		}
	}
	switch {
	case len(ours) > 0:
		return interleave(ours, asked, peerAsked)
	case len(others) > 0:
		likely := slices.DeleteFunc(routed, func(c Choice) bool { return !hasRoute(&c) })
		if len(likely) > 0 {
			return interleave(likely, asked, peerAsked)
		}
		nearly := func(c *Choice) int { // one end is what its host asked for
			if slices.Contains(asked, c.Local.Index) || slices.Contains(peerAsked, c.Peer.Index) {
				return 1
			}
			return 0
		}
		full := func(c *Choice) int { // the host registers what the asked device's properties name
			if c.Local.Short {
				return 0
			}
			return 1
		}
		return []Choice{slices.MaxFunc(others, func(a, b Choice) int {
			return cmp.Or(full(&a)-full(&b), a.speed()-b.speed(), nearly(&a)-nearly(&b))
		})}
	}
	return interleave(routed, asked, peerAsked)
}

// interleave gives every port of the side that has more of them one pair, and
// spreads these over the other side's; the i-th port meets the i-th if it can.
func interleave(all []Choice, asked, peerAsked []uint16) (out []Choice) {
	here, there := map[uint16]int{}, map[uint16]int{}
	for i := range max(len(asked), len(peerAsked)) {
		if len(all) == 0 {
			break
		}
		cost := func(c *Choice) int {
			n := 2 * (here[c.Local.Index] + there[c.Peer.Index])
			if c.Local.Index != asked[i%len(asked)] || c.Peer.Index != peerAsked[i%len(peerAsked)] {
				n++
			}
			return n
		}
		best := slices.MinFunc(all, func(a, b Choice) int { return cmp.Or(cost(&a)-cost(&b), b.speed()-a.speed()) })
		if here[best.Local.Index] > 0 && there[best.Peer.Index] > 0 {
			break // both have a pair already
		}
		here[best.Local.Index]++
		there[best.Peer.Index]++
		out = append(out, best)
		all = slices.DeleteFunc(slices.Clone(all), func(c Choice) bool { return c.Key() == best.Key() })
	}
	return out
}
