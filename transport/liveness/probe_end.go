package liveness

import (
	"context"
	"errors"
	"time"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// probeEnd is the queue pair of a probe, with what it needs.
type probeEnd struct {
	pair   *route.Pair
	limit  time.Duration // for an acknowledgement
	log    report.Logger
	number uint32 // of its offer
	pd     *mr.PD
	cq     *qp.CQ
	qp     *qp.QP
	proof  *mr.Region   // of the memory that proofs write from and to
	theirs wire.Scratch // the peer's, once it is connected
}

// newEnd makes a queue pair in INIT. When it fails nothing is left.
func newEnd(pair *route.Pair, number uint32, limit time.Duration, log report.Logger) (*probeEnd, error) {
	e := &probeEnd{pair: pair, number: number, limit: limit, log: log}
	if err := e.make(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *probeEnd) make() (err error) {
	local := e.pair.Local
	if e.pd, err = local.AcquirePD(); err != nil {
		return err
	}
	if e.cq, err = qp.NewCQ(e.pd, qp.ProofDepth+1); err != nil {
		return err
	}
	e.qp, err = qp.New(local, e.pd, qp.Config{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: qp.ProofDepth, RecvDepth: 1})
	if err == nil {
		e.proof, err = e.pd.Scratch()
	}
	return err
}

// local is this end as the peer must know it.
func (e *probeEnd) local() wire.QPEnd {
	p := e.pair
	l := e.qp.Local(p.GID)
	return wire.QPEnd{Device: p.LocalIndex, Peer: p.PeerIndex, QPN: l.QPN, PSN: l.PSN, LID: l.LID, MTU: p.CapMTU(l.MTU), GID: route.ToWire(l.GID),
		Scratch: wire.Scratch{Addr: mr.ScratchAddr(), Key: e.proof.RKey}}
}

func (e *probeEnd) connect(ctx context.Context, limit time.Duration, theirs *wire.QPEnd, sl, tc uint8) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e.theirs = theirs.Scratch
	return e.qp.Connect(ctx, qp.Path{GID: e.pair.GID, SL: sl, TC: tc,
		Peer: qp.End{QPN: theirs.QPN, PSN: theirs.PSN, LID: theirs.LID, MTU: e.pair.CapMTU(theirs.MTU), GID: route.FromWire(theirs.GID)}})
}

// ask writes packets of every size that comms use, and waits for the acknowledgements.
func (e *probeEnd) ask(ctx context.Context) error {
	return qp.Prove(ctx, e.limit, e.cq, qp.Proof{QP: e.qp, From: e.proof, Addr: e.theirs.Addr, RKey: e.theirs.Key})
}

// close ends what exists.
func (e *probeEnd) close() {
	var err error
	if e.qp != nil {
		err = e.qp.Close()
	}
	if e.proof != nil {
		err = errors.Join(err, e.proof.Release())
	}
	if e.cq != nil {
		err = errors.Join(err, e.cq.Close())
	}
	if e.pd != nil {
		err = errors.Join(err, e.pd.Release())
	}
	if err != nil {
		report.Say(e.log, err)
	}
}
