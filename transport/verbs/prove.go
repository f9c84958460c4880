package verbs

import (
	"context"
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
	lib := q.dev.provider.lib
	if errno := q.call(func(lib *calls) syscall.Errno { return lib.postProof(q.raw, addr, rkey) }); errno != 0 {
		return fail("ibv_post_send", q.dev.Name, errno, "a write of 0 bytes on queue pair %d", q.Number)
	}
	waited, looked := time.Duration(0), time.Now()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		wc, n, errno := lib.pollOne(cq.raw)
		switch {
		case errno != 0:
			return fail("ibv_poll_cq", q.dev.Name, errno, "")
		case n > 0 && wc.Status != 0:
			wc.QP, wc.QPN, wc.Work = q, q.Number, "a write of 0 bytes"
			err := wc.Explain()
			if wc.Status == retryExceeded {
				return &Unanswered{err}
			}
			return err
		case n > 0:
			return nil
		case waited >= limit:
			return &Unanswered{rdma.Errorf(rdma.Network, "connect", "no acknowledgement of a write of 0 bytes on queue pair %d within %v", q.Number, limit).
				On(q.dev.Name).Try("packets do not reach the peer, or its do not come back: check switch, VLAN, routes and firewalls (UDP port 4791)")}
		}
		select {
		case <-ctx.Done():
			return rdma.Errorf(rdma.Network, "connect", "waiting for the acknowledgement of a write of 0 bytes on queue pair %d: %w", q.Number, context.Cause(ctx)).On(q.dev.Name)
		case <-time.After(pause):
		}
		now := time.Now()
		waited += min(now.Sub(looked), longTurn)
		looked = now
	}
}
