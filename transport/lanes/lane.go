package lanes

import (
	"context"
	"fmt"
	"time"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// lane is a queue pair of a comm.
type lane struct {
	qp     *qp.QP
	pair   *route.Pair
	port   *onPort
	mine   wire.QPEnd // this end, as the peer knows it
	theirs wire.QPEnd
	again  bool // an earlier comm has had it: it is connected
	posted int  // receives that the earlier one has left
}

// proof is what shows which packets the lane carries.
func (l *lane) proof() qp.Proof {
	return qp.Proof{QP: l.qp, From: l.port.proof, Addr: l.theirs.Scratch.Addr, RKey: l.theirs.Scratch.Key}
}

const proofLimit = time.Second

// prove asks a lane whose completion queue nobody else polls.
func (l *lane) prove(ctx context.Context) error {
	return qp.Prove(ctx, proofLimit, l.port.cq, l.proof())
}

// Spread is how the lanes of a comm run over its pairs of ports: the index of
// each one's pair.
func Spread(pairs, lanes int) (at []int) {
	for i := range lanes {
		at = append(at, i%pairs)
	}
	return at
}

// describeLanes describes this side's ends of lanes. The listening side, answering,
// asks for what is left of the vendor's enhancements when they are connected, the
// other one before; lanes of an earlier comm have them.
func describeLanes(lanes []*lane, answering bool) error {
	for _, l := range lanes {
		end, ece := l.qp.Local(l.pair.GID), l.mine.ECE
		l.mine = wire.QPEnd{Device: l.pair.LocalIndex, Peer: l.pair.PeerIndex, Slot: uint8(l.port.slot),
			QPN: end.QPN, PSN: end.PSN, LID: end.LID, MTU: l.pair.CapMTU(end.MTU), GID: route.ToWire(end.GID),
			Scratch: wire.Scratch{Addr: mr.ScratchAddr(), Key: l.port.proof.RKey}}
		switch {
		case l.again:
			l.mine.ECE = ece
		case !answering || l.theirs.ECE != (wire.ECE{}):
			ece, _, err := l.qp.QueryECE()
			if err != nil {
				return &PairError{l.pair, err}
			}
			l.mine.ECE = wire.ECE(ece)
		}
	}
	return nil
}

// endsOf are this side's ends of lanes that have been described.
func endsOf(lanes []*lane) (all []wire.QPEnd) {
	for _, l := range lanes {
		all = append(all, l.mine)
	}
	return all
}

// describePair names a pair of ports and the path's MTU, which is known with the
// first of its lanes: the smaller of both ports', or what passes between them.
func describePair(p *route.Pair, lanes []*lane) string {
	mtu := "later"
	for i := range lanes {
		if lanes[i].pair == p {
			mtu = fmt.Sprintf("MTU %d", min(p.Local.PathMTU(), ibv.MTUBytes(p.CapMTU(lanes[i].theirs.MTU))))
			break
		}
	}
	return fmt.Sprintf("%s (GIDs %v and %v, %s)", p.Local.Name, p.GID.Addr.Unmap(), p.PeerGID.Addr.Unmap(), mtu)
}

// numbers are the queue pairs' on both sides.
func numbers(lanes []*lane) string {
	var each []string
	for i := range lanes {
		each = append(each, fmt.Sprintf("%d-%d", lanes[i].qp.Number, lanes[i].theirs.QPN))
	}
	return report.Few(each, 8, " ")
}

// PairError is why one pair of ports, of those that a comm was to run over,
// does not work.
type PairError struct {
	Pair *route.Pair
	Err  error
}

func (e *PairError) Error() string { return e.Err.Error() }

func (e *PairError) Unwrap() error { return e.Err }
