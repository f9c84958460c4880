package route

import (
	"fmt"

	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// Pair is two ports between which lanes may run. The indices are those of
// the two inventories.
type Pair struct {
	Local                 *port.Device
	GID                   gid.GID
	LocalIndex, PeerIndex uint16
	PeerGID               gid.GID
	Reach                 gid.Reach
	Speed, PeerSpeed      int // Mb/s, of the two ports; 0: not known
	MTU                   int // what its path carries, in bytes, if less than both ports do; 0: nothing is known
}

// Key tells the pairs of a connection apart.
func (p *Pair) Key() [2]uint16 { return [2]uint16{p.LocalIndex, p.PeerIndex} }

// CapMTU returns what of an MTU, as enum ibv_mtu, the queue pairs of this pair may use.
func (p *Pair) CapMTU(mtu uint8) uint8 {
	for p.MTU > 0 && mtu > 1 && ibv.MTUBytes(mtu) > p.MTU {
		mtu--
	}
	return mtu
}

// Same reports whether two pairs are the same ports with the same addresses.
func (p *Pair) Same(q *Pair) bool {
	return p.Local == q.Local && p.Key() == q.Key() && p.GID == q.GID && p.PeerGID.Addr == q.PeerGID.Addr && p.PeerGID.Type == q.PeerGID.Type
}

// Answered takes in what the peer says of its port.
func (p *Pair) Answered(e *wire.PortPair) error {
	if e.Device != p.PeerIndex || e.Peer != p.LocalIndex {
		return fmt.Errorf("it runs from device %d to %d, not from %d to %d: %w", e.Device, e.Peer, p.PeerIndex, p.LocalIndex, wire.ErrMalformed)
	}
	if p.PeerGID = FromWire(e.GID); p.GID.Reaches(p.PeerGID) == gid.Unreachable {
		return fmt.Errorf("%v cannot be reached from %v", p.PeerGID, p.GID)
	}
	return nil
}
