package lanes_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/transport/fastpath"
	"weft/transport/lanes"
	"weft/transport/rdma"
	"weft/transport/route"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// roce is the GID of a port in one of a few subnets.
func roce(subnet, host int) gid.GID {
	return gid.GID{Addr: netip.AddrFrom16(netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", subnet, host)).As16()), Type: ibv.GIDRoCEv2, Bits: 120}
}

var ports = []*port.Device{{Device: rdma.Device{Name: "a0"}}, {Device: rdma.Device{Name: "a1"}}}

// pair is from one of this host's ports to one of the peer's, whose devices are numbered from 10 on.
func pair(local, peer int) route.Pair {
	return route.Pair{Local: ports[local], LocalIndex: uint16(local), PeerIndex: uint16(10 + peer), GID: roce(local, 1), PeerGID: roce(local, 100+peer)}
}

// end is the peer's of a lane over a pair; its port is in the slot of its number.
func end(p route.Pair, qpn uint32) wire.QPEnd {
	return wire.QPEnd{Device: p.PeerIndex, Peer: p.LocalIndex, Slot: uint8(p.PeerIndex - 10), QPN: qpn, GID: route.ToWire(p.PeerGID)}
}

// What the peer says of its ends of further lanes: taken in, left out, or no answer at all.
func TestFurtherLanesOfThePeer(t *testing.T) {
	straight, second, crossed := pair(0, 0), pair(1, 1), pair(0, 1)
	other := func(e wire.QPEnd, change func(*wire.QPEnd)) wire.QPEnd { change(&e); return e }
	for _, c := range []struct {
		name  string
		known []uint32 // keys; nil: of slot 0
		keys  []uint32
		ends  []wire.QPEnd
		qpns  []uint32
		all   []uint32 // keys
		lost  int
		wrong string
	}{
		{name: "all, in any order", keys: []uint32{7, 8}, ends: []wire.QPEnd{end(second, 21), end(straight, 22), end(second, 23)},
			qpns: []uint32{21, 22, 23}, all: []uint32{7, 8}},
		{name: "no key again for a slot that is known", keys: []uint32{0, 8}, ends: []wire.QPEnd{end(straight, 22), end(second, 21), end(second, 23)},
			qpns: []uint32{21, 22, 23}, all: []uint32{7, 8}},
		{name: "a key for a slot that had none", known: []uint32{0, 8}, keys: []uint32{7}, ends: []wire.QPEnd{end(straight, 22), end(second, 21), end(second, 23)},
			qpns: []uint32{21, 22, 23}, all: []uint32{7, 8}},
		{name: "a pair that is not offered", keys: []uint32{7}, ends: []wire.QPEnd{end(straight, 22)},
			qpns: []uint32{22}, all: []uint32{7}, lost: 1},
		{name: "none", keys: []uint32{7}, wrong: "not offered"},
		{name: "another key", keys: []uint32{9}, ends: []wire.QPEnd{end(straight, 22)}, wrong: "slot 0 has another key"},
		{name: "more than there are", ends: []wire.QPEnd{end(straight, 22), end(straight, 24)}, wrong: "number 1 runs from device 10 to 0"},
		{name: "a pair that was not agreed on", ends: []wire.QPEnd{end(crossed, 22)}, wrong: "runs from device 11 to 0"},
		{name: "another address", ends: []wire.QPEnd{other(end(straight, 22), func(e *wire.QPEnd) { e.GID.Addr[15]++ })}, wrong: "has GID"},
		{name: "another type of address", ends: []wire.QPEnd{other(end(straight, 22), func(e *wire.QPEnd) { e.GID.Type = uint8(ibv.GIDRoCEv1) })}, wrong: "has GID"},
		{name: "two ports in one slot", ends: []wire.QPEnd{other(end(second, 21), func(e *wire.QPEnd) { e.Slot = 0 })}, wrong: "device 11 is in slot 0"},
		{name: "one port in two slots", ends: []wire.QPEnd{other(end(straight, 22), func(e *wire.QPEnd) { e.Slot = 1 })}, wrong: "device 10 is in slot 1"},
		{name: "some lanes of a pair", keys: []uint32{7, 8}, ends: []wire.QPEnd{end(straight, 22), end(second, 21)}, wrong: "some further lanes between device 11 and 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.known == nil {
				c.known = []uint32{7}
			}
			g := lanes.NewGrowth(fastpath.Send, []route.Pair{straight, second}, []int{0, 1, 0, 1}, []wire.QPEnd{end(straight, 20)}, c.known)
			qpns, all, lost, err := g.Learn(c.keys, c.ends)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) || c.ends != nil && !errors.Is(err, wire.ErrMalformed) {
					t.Errorf("error %v, want %q", err, c.wrong)
				}
				return
			}
			if err != nil || !slices.Equal(qpns, c.qpns) || !slices.Equal(all, c.all) || len(lost) != c.lost {
				t.Errorf("QPs %v, keys %v, lost %q, error %v; want %v, %v, %d", qpns, all, lost, err, c.qpns, c.all, c.lost)
			}
		})
	}
}

// One side proves a new pair, and one whose two ports other pairs have is none that was agreed on.
func TestWhoProvesAPair(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, new    route.Pair
		sends, recvs  bool // whether the side of that kind proves
		wrong, repeat bool
	}{
		{name: "both ports are new", first: pair(0, 0), new: pair(1, 1), sends: true},
		{name: "this side's port is new", first: pair(0, 0), new: pair(1, 0), sends: true, recvs: true},
		{name: "the peer's port is new", first: pair(0, 0), new: pair(0, 1)},
		{name: "a pair that the comm has", first: pair(0, 0), new: pair(0, 0), repeat: true},
	} {
		for kind, want := range map[fastpath.Kind]bool{fastpath.Send: c.sends, fastpath.Recv: c.recvs} {
			pairs := []route.Pair{c.first, c.new}
			which := 1
			if c.repeat {
				which = 0
			}
			mine, err := lanes.NewGrowth(kind, pairs, []int{0, 1}, []wire.QPEnd{end(c.first, 20)}, nil).Proves(which)
			if mine != want || err != nil {
				t.Errorf("%s, kind %d: %v, %v", c.name, kind, mine, err)
			}
		}
	}
	pairs := []route.Pair{pair(0, 0), pair(1, 1), pair(0, 1)}
	if _, err := lanes.NewGrowth(fastpath.Send, pairs, []int{0, 1, 2}, []wire.QPEnd{end(pairs[0], 20), end(pairs[1], 21)}, nil).Proves(2); err == nil {
		t.Error("two ports that other pairs have are proven as a third pair")
	}
}

// The peer's answer to an offer must be about the ports that were offered.
func TestAnswerRunsAsOffered(t *testing.T) {
	straight, second := pair(0, 0), pair(1, 1)
	later := func(p route.Pair) wire.PortPair {
		return wire.PortPair{Device: p.PeerIndex, Peer: p.LocalIndex, GID: route.ToWire(p.PeerGID)}
	}
	far := pair(0, 0)
	far.PeerGID = gid.GID{Addr: netip.MustParseAddr("fe80::1"), Type: ibv.GIDInfiniBand, Bits: 64}
	for _, c := range []struct {
		name  string
		lanes []wire.QPEnd
		later []wire.PortPair
		wrong string
	}{
		{"as offered", []wire.QPEnd{end(straight, 1), end(straight, 2)}, []wire.PortPair{later(second)}, ""},
		{"a lane less", []wire.QPEnd{end(straight, 1)}, []wire.PortPair{later(second)}, "1 lanes and 1 pairs of ports for 2 and 1"},
		{"no later pair", []wire.QPEnd{end(straight, 1), end(straight, 2)}, nil, "2 lanes and 0 pairs of ports for 2 and 1"},
		{"another port", []wire.QPEnd{end(straight, 1), end(second, 2)}, []wire.PortPair{later(second)}, "lane 1 of 2: it runs from device 11 to 1"},
		{"an address that is out of reach", []wire.QPEnd{end(straight, 1), end(far, 2)}, []wire.PortPair{later(second)}, "lane 1 of 2: fe80::1"},
		{"another later pair", []wire.QPEnd{end(straight, 1), end(straight, 2)}, []wire.PortPair{later(straight)}, "pair 0 of those to come"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := lanes.NewGrowth(fastpath.Send, []route.Pair{straight, second}, []int{0, 0, 1}, make([]wire.QPEnd, 2), nil)
			err := g.RunsAs(c.lanes, c.later)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("error %v, want %q", err, c.wrong)
			}
		})
	}
}
