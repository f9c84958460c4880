package verbs

import (
	"context"
	"syscall"
	"time"

	"weft/transport/rdma"
)

// Prove writes nothing to the peer and waits for the acknowledgement: the path
// carries packets both ways. It polls the queue pair's completion queue itself,
// so it comes before anybody else does.
func (q *QP) Prove(ctx context.Context, cq *CQ, addr uint64, rkey uint32) error {
	lib := q.dev.provider.lib
	if errno := q.call(func(lib *calls) syscall.Errno { return lib.postProof(q.raw, addr, rkey) }); errno != 0 {
		return fail("ibv_post_send", q.dev.Name, errno, "a write of 0 bytes on queue pair %d", q.Number)
	}
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		wc, n, errno := lib.pollOne(cq.raw)
		switch {
		case errno != 0:
			return fail("ibv_poll_cq", q.dev.Name, errno, "")
		case n > 0 && wc.Status != 0:
			wc.QP, wc.QPN, wc.Work = q, q.Number, "a write of 0 bytes"
			return wc.Explain()
		case n > 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return rdma.Errorf(rdma.Network, "connect", "no acknowledgement of a write of 0 bytes on queue pair %d: %w", q.Number, context.Cause(ctx)).
				On(q.dev.Name).Try("packets do not reach the peer, or its do not come back: check switch, VLAN, routes and firewalls (UDP port 4791)")
		case <-time.After(pause):
		}
	}
}
