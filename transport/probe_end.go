package transport

import (
	"context"
	"errors"
	"time"

	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// probeEnd is the queue pair of a probe, with what it needs.
type probeEnd struct {
	probe  *probe
	number uint32
	pd     *verbs.PD
	cq     *verbs.CQ
	qp     *verbs.QP
}

// newEnd makes a queue pair in INIT. When it fails nothing is left.
func (p *probe) newEnd(number uint32) (*probeEnd, error) {
	e := &probeEnd{probe: p, number: number}
	if err := e.make(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *probeEnd) make() (err error) {
	local := e.probe.pair.local
	if e.pd, err = local.AcquirePD(); err != nil {
		return err
	}
	if e.cq, err = e.pd.NewCQ(2); err != nil {
		return err
	}
	e.qp, err = local.NewQP(e.pd, verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 1, RecvDepth: 1})
	return err
}

// local is this end as the peer must know it.
func (e *probeEnd) local() wire.QPEnd {
	p := &e.probe.pair
	l := e.qp.Local(p.gid)
	return wire.QPEnd{Device: p.localIndex, Peer: p.peerIndex, QPN: l.QPN, PSN: l.PSN, LID: l.LID, MTU: l.MTU, GID: portGID(l.GID)}
}

func (e *probeEnd) connect(ctx context.Context, limit time.Duration, theirs *wire.QPEnd, sl, tc uint8) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return e.qp.Connect(ctx, verbs.Path{GID: e.probe.pair.gid, SL: sl, TC: tc,
		Peer: verbs.End{QPN: theirs.QPN, PSN: theirs.PSN, LID: theirs.LID, MTU: theirs.MTU, GID: verbsGID(theirs.GID)}})
}

// ask writes nothing, which needs no key, and waits for the acknowledgement.
func (e *probeEnd) ask(ctx context.Context) error {
	return e.qp.Prove(ctx, e.probe.watch.limit, e.cq, 0, 0)
}

// close ends what exists.
func (e *probeEnd) close() {
	var err error
	if e.qp != nil {
		err = e.qp.Close()
	}
	if e.cq != nil {
		err = errors.Join(err, e.cq.Close())
	}
	if e.pd != nil {
		err = errors.Join(err, e.pd.Release())
	}
	if err != nil {
		rdma.Say(e.probe.watch.core.cfg.Log, err)
	}
}
