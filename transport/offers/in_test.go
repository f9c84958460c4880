package offers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/offers"
	"weft/transport/route"
	"weft/transport/wire"
)

// between is a pair of ports as an offer has it, at is a lane there.
func between(device, peer uint16) wire.PortPair {
	return wire.PortPair{Device: device, Peer: peer, GID: wire.PortGID{Addr: wire.GID{15: byte(device)}}}
}

func at(device, peer uint16) wire.QPEnd {
	p := between(device, peer)
	return wire.QPEnd{Device: p.Device, Peer: p.Peer, GID: p.GID}
}

// Over which pairs of ports an offer wants which lanes, or why that cannot be.
func TestPortPairsOfAnOffer(t *testing.T) {
	moved := at(0, 5)
	moved.GID.Addr[0] = 1
	for _, c := range []struct {
		name  string
		offer wire.Offer
		pairs string
		at    []int
		wrong string
	}{
		{"one lane", wire.Offer{Lanes: []wire.QPEnd{at(0, 5)}}, "0-5", []int{0}, ""},
		{"lanes in turn", wire.Offer{Lanes: []wire.QPEnd{at(0, 5), at(1, 6), at(0, 5), at(1, 6)}}, "0-5 1-6", []int{0, 1, 0, 1}, ""},
		{"lanes in another order, when none comes later", wire.Offer{Lanes: []wire.QPEnd{at(0, 5), at(0, 5), at(1, 6)}}, "0-5 1-6", []int{0, 0, 1}, ""},
		{"further lanes on the same ports", wire.Offer{Lanes: []wire.QPEnd{at(0, 5)}, Further: 3}, "0-5", []int{0, 0, 0, 0}, ""},
		{"further lanes on later ports", wire.Offer{Lanes: []wire.QPEnd{at(0, 5)}, Further: 3, Later: []wire.PortPair{between(1, 6)}}, "0-5 1-6", []int{0, 1, 0, 1}, ""},
		{"two addresses of one pair", wire.Offer{Lanes: []wire.QPEnd{at(0, 5), moved}}, "", nil, "lane 1 has GID"},
		{"a later pair that a lane has", wire.Offer{Lanes: []wire.QPEnd{at(0, 5)}, Further: 1, Later: []wire.PortPair{between(0, 5)}}, "", nil, "device 0 to 5 twice"},
		{"a later pair twice", wire.Offer{Lanes: []wire.QPEnd{at(0, 5)}, Further: 2, Later: []wire.PortPair{between(1, 6), between(1, 6)}}, "", nil, "device 1 to 6 twice"},
		{"lanes that are not in turn, with more to come", wire.Offer{Lanes: []wire.QPEnd{at(0, 5), at(0, 5), at(1, 6)}, Further: 1}, "", nil, "in another order"},
		{"two lanes of one pair where a later one comes first", wire.Offer{Lanes: []wire.QPEnd{at(0, 5), at(0, 5)}, Further: 2, Later: []wire.PortPair{between(1, 6)}}, "", nil, "in another order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pairs, lanes, err := offers.PortPairs(&c.offer)
			if c.wrong != "" {
				if !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.wrong) || pairs != nil || lanes != nil {
					t.Errorf("%v, %v, error %v, want %q", pairs, lanes, err, c.wrong)
				}
				return
			}
			var got []string
			for _, p := range pairs {
				got = append(got, fmt.Sprintf("%d-%d", p.Device, p.Peer))
				if p.GID != between(p.Device, p.Peer).GID {
					t.Errorf("device %d to %d has GID %v", p.Device, p.Peer, p.GID)
				}
			}
			if err != nil || strings.Join(got, " ") != c.pairs || !slices.Equal(lanes, c.at) {
				t.Errorf("%v, %v, error %v; want %s, %v", got, lanes, err, c.pairs, c.at)
			}
		})
	}
}

// What the connecting side and the log hear of an offer that is refused.
func TestRefusalOfAnOffer(t *testing.T) {
	offer := &wire.Offer{Lanes: []wire.QPEnd{at(0, 5)}, Further: 1, Later: []wire.PortPair{between(1, 6)}}
	reuse := &wire.Offer{Header: wire.Header{Flags: wire.FlagReuse}, Lanes: offer.Lanes}
	down := errors.New("the link is down")
	for _, c := range []struct {
		name   string
		offer  *wire.Offer
		why    error
		silent bool
		pair   uint8
		flags  uint16
		line   string
		ends   bool
	}{
		{"of no pair", offer, down, false, 0, 0, "INFO NET  <- host1: RDMA refused: the link is down", false},
		{"of the later pair", offer, &lanes.PairError{Pair: &route.Pair{LocalIndex: 6, PeerIndex: 1}, Err: down}, false, 1, 0, "RDMA refused: the link is down", false},
		{"of a pair that was not offered", offer, &lanes.PairError{Pair: &route.Pair{LocalIndex: 1, PeerIndex: 6}, Err: down}, false, 0, 0, "RDMA refused", false},
		{"of lanes that were to serve again", reuse, down, false, 0, wire.FlagReuse, "an earlier connection's QPs refused: the link is down", false},
		{"when the peer has had its lines", offer, down, true, 0, 0, "", false},
		{"for good", offer, offers.Final(down), false, 0, wire.FlagFinal, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &report.Recorder{}
			answer, err := offers.Refuses(c.offer, c.why, log, !c.silent)
			if answer.Reason != "the link is down" || answer.Pair != c.pair || answer.Flags != c.flags || (err != nil) != c.ends {
				t.Errorf("reason %q, pair %d, flags %#x, error %v", answer.Reason, answer.Pair, answer.Flags, err)
			}
			if all := strings.Join(log.Lines(), "\n"); (all == "") != (c.line == "") || !strings.Contains(all, c.line) {
				t.Errorf("log %q, want %q", all, c.line)
			}
		})
	}
}
