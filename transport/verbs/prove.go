package verbs

import (
	"context"
	"slices"
	"syscall"
	"time"

	"weft/transport/rdma"
)

// Unanswered says that the peer was asked and no acknowledgement came.
type Unanswered struct{ Err *rdma.Error }

func (u *Unanswered) Error() string { return u.Err.Error() }

// Unwrap gives errors.As the cause.
func (u *Unanswered) Unwrap() error { return u.Err }

const (
	retryExceeded = 12                    // IBV_WC_RETRY_EXC_ERR
	longTurn      = 50 * time.Millisecond // what a wait counts at most between two looks
)

// Prove writes nothing to the peer and waits for the acknowledgement: the path
// carries packets both ways. The answer is an *Unanswered if none comes within
// limit, counted in time in which this process runs: one that is stopped, or
// gets no processor, must not take its own silence for the peer's. It polls the
// queue pair's completion queue itself, so nobody else may.
func (q *QP) Prove(ctx context.Context, limit time.Duration, cq *CQ, addr uint64, rkey uint32) error {
	return prove(ctx, limit, cq, addr, rkey, []*QP{q})
}

// Settle is Prove for queue pairs that have carried something before, all of
// those that complete to cq: each works, and holds no request of then any more.
// What had been sent ended well; something that was received since is an error,
// for nobody has seen it.
func Settle(ctx context.Context, limit time.Duration, cq *CQ, qps []*QP) error {
	return prove(ctx, limit, cq, 0, 0, qps) // 0 bytes need no key
}

func prove(ctx context.Context, limit time.Duration, cq *CQ, addr uint64, rkey uint32, qps []*QP) error {
	if _, err := cq.take(qps); err != nil { // what is left there takes places in send queues
		return err
	}
	for _, q := range qps {
		if errno := q.call(func(lib *calls) syscall.Errno { return lib.postProof(q.raw, addr, rkey) }); errno != 0 {
			return fail("ibv_post_send", q.dev.Name, errno, "a write of 0 bytes on queue pair %d", q.Number)
		}
	}
	waited, looked := time.Duration(0), time.Now()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		proven, err := cq.take(qps)
		if err != nil {
			return err
		}
		if qps = slices.DeleteFunc(slices.Clone(qps), func(q *QP) bool { return slices.Contains(proven, q) }); len(qps) == 0 {
			return nil
		}
		if waited >= limit {
			return &Unanswered{rdma.Errorf(rdma.Network, "connect", "no acknowledgement of a write of 0 bytes on queue pair %d within %v", qps[0].Number, limit).
				On(qps[0].dev.Name).Try("packets do not reach the peer, or its do not come back: check switch, VLAN, routes and firewalls (UDP port 4791)")}
		}
		select {
		case <-ctx.Done():
			return rdma.Errorf(rdma.Network, "connect", "waiting for the acknowledgement of a write of 0 bytes on queue pair %d: %w", qps[0].Number, context.Cause(ctx)).On(qps[0].dev.Name)
		case <-time.After(pause):
		}
		now := time.Now()
		waited += min(now.Sub(looked), longTurn)
		looked = now
	}
}

// take takes all completions that there are, and answers which of qps are proven.
func (cq *CQ) take(qps []*QP) (proven []*QP, err error) {
	for {
		wc, n, errno := cq.a.p.lib.pollOne(cq.raw)
		if errno != 0 {
			return nil, fail("ibv_poll_cq", cq.a.name, errno, "")
		}
		if n == 0 {
			return proven, nil
		}
		i := slices.IndexFunc(qps, func(q *QP) bool { return q.Number == wc.QPN })
		switch {
		case wc.Status != 0:
			if wc.Work = "a request of an earlier connection"; wc.of == ofProof {
				wc.Work = "a write of 0 bytes"
			}
			if i >= 0 {
				wc.QP = qps[i]
			}
			err := wc.Explain()
			if wc.Status == retryExceeded {
				return nil, &Unanswered{err}
			}
			return nil, err
		case wc.of == ofReceive:
			return nil, rdma.Errorf(rdma.Peer, "connect", "queue pair %d received something that no connection was there for", wc.QPN).On(cq.a.name)
		case wc.of == ofProof && i >= 0:
			proven = append(proven, qps[i])
		}
	}
}
