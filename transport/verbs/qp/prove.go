package qp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
)

// Proof is a queue pair that is to show which packets its path carries. It writes
// from one scratch to another: what arrives there matters to nobody.
type Proof struct {
	QP   *QP
	From *mr.Region // of mr.PD.Scratch, here
	Addr uint64     // the peer's
	RKey uint32
}

// Unanswered says that the peer was asked and no acknowledgement came, of packets
// of full size at least.
type Unanswered struct {
	Err    *report.Error
	MTU    int // of the path, in bytes
	Passes int // the largest MTU whose packets were acknowledged; 0: none
}

func (u *Unanswered) Error() string { return u.Err.Error() }

// Unwrap gives errors.As the cause.
func (u *Unanswered) Unwrap() error { return u.Err }

const (
	longTurn    = 50 * time.Millisecond // what a wait counts at most between two looks
	smallestMTU = 256

	// ProofDepth is the requests that a proof posts: a write for each MTU.
	ProofDepth = 5
)

// Prove writes one packet of each size up to the path's MTU, and waits for the
// acknowledgements: what is written arrives, and answers come back. It returns an
// *Unanswered if one is missing after limit, counted in time in which this process
// runs: one that is stopped, or gets no processor, must not take its own silence
// for the peer's. It polls cq itself, so nobody else may.
//
// Queue pairs that have carried something before, all that complete to cq, hold no
// request of then any more when it succeeds. What had been sent ended well;
// something that was received since is an error, for nobody has seen it.
func Prove(ctx context.Context, limit time.Duration, cq *CQ, proofs ...Proof) error {
	t := proving{cq: cq}
	for i := range proofs {
		t.left = append(t.left, &proved{Proof: &proofs[i]})
	}
	if err := t.take(); err != nil { // what is left there takes places in send queues
		return err
	}
	for _, p := range t.left {
		if err := p.post(); err != nil {
			return err
		}
	}
	waited, looked := time.Duration(0), time.Now()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if err := t.take(); err != nil {
			return err
		}
		if len(t.left) == 0 {
			return nil
		}
		if waited >= limit {
			return t.left[0].unanswered(limit)
		}
		select {
		case <-ctx.Done():
			if t.left[0].done > 0 && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return t.left[0].unanswered(waited) // what passed is worth knowing
			}
			q := t.left[0].QP
			return report.Errorf(report.Network, "connect", "waiting for the acknowledgement of a proof on QP %d: %w", q.Number, context.Cause(ctx)).On(q.dev.Name)
		case <-time.After(pause):
		}
		now := time.Now()
		waited += min(now.Sub(looked), longTurn)
		looked = now
	}
}

// proving is a proof under way.
type proving struct {
	cq   *CQ
	left []*proved
}

// proved is a queue pair's part of it.
type proved struct {
	*Proof
	posted, done int // writes
}

// post posts what there is room for.
func (p *proved) post() error {
	q := p.QP
	for ; p.posted-p.done < q.SendDepth && p.size(p.posted) <= q.mtu(); p.posted++ {
		size := p.size(p.posted)
		if errno := q.call(func(lib *ibv.Calls) syscall.Errno {
			return lib.PostProof(q.raw, uintptr(mr.ScratchAddr()), p.From.LKey, size, p.Addr, p.RKey)
		}); errno != 0 {
			return fail.Call("ibv_post_send", q.dev.Name, errno, "a write of %d bytes on QP %d", size, q.Number)
		}
	}
	return nil
}

// size is that of a write, by its number.
func (p *proved) size(n int) int { return smallestMTU << n }

// passes is the size of the largest write that was acknowledged.
func (p *proved) passes() int {
	if p.done == 0 {
		return 0
	}
	return p.size(p.done - 1)
}

func (p *proved) unanswered(limit time.Duration) error {
	q := p.QP
	e := report.Errorf(report.Network, "connect", "no acknowledgement of a write of %d bytes on QP %d within %v", p.size(p.done), q.Number, limit.Round(time.Millisecond)).On(q.dev.Name)
	return p.explain(e.Try("packets do not reach the peer, or its do not come back: check switch, VLAN, routes and firewalls (UDP port 4791)").See("WEFT-110 WEFT-111 WEFT-115"))
}

// explain says what is lost on a path that carries small packets.
func (p *proved) explain(e *report.Error) *Unanswered {
	if p.done > 0 {
		e.Err = fmt.Errorf("packets of MTU %d are lost, those of %d pass: %w", p.QP.mtu(), p.passes(), e.Err)
		e.Remedy = fmt.Sprintf("a switch port or tunnel on the way takes less than the ports' MTU of %d and its headers: raise it there, or lower the MTU of the interfaces on both hosts", p.QP.mtu())
		e.Rules = "WEFT-060 WEFT-165 WEFT-170"
	}
	return &Unanswered{Err: e, MTU: p.QP.mtu(), Passes: p.passes()}
}

// take takes all completions that there are.
func (t *proving) take() error {
	for {
		wc, n, errno := t.cq.card.Lib.PollOne(t.cq.raw)
		if errno != 0 {
			return fail.Call("ibv_poll_cq", t.cq.card.Name, errno, "")
		}
		if n == 0 {
			return nil
		}
		i := slices.IndexFunc(t.left, func(p *proved) bool { return p.QP.Number == wc.QPN })
		switch {
		case wc.Status != 0:
			c := Completion{Status: wc.Status, Vendor: wc.Vendor, QPN: wc.QPN, Work: "a request of an earlier connection"}
			if i >= 0 {
				c.QP = t.left[i].QP
			}
			if wc.Of == ibv.OfProof && i >= 0 {
				c.Work = fmt.Sprintf("a write of %d bytes", t.left[i].size(t.left[i].done))
			}
			err := c.Explain()
			switch {
			case wc.Status == fail.RetryExceeded && i >= 0:
				return t.left[i].explain(err)
			case wc.Status == fail.RetryExceeded:
				return &Unanswered{Err: err}
			}
			return err
		case wc.Of == ibv.OfReceive:
			return report.Errorf(report.Peer, "connect", "QP %d received something that no connection was there for", wc.QPN).On(t.cq.card.Name)
		case wc.Of == ibv.OfProof && i >= 0:
			p := t.left[i]
			if p.done++; p.size(p.done) > p.QP.mtu() {
				t.left = slices.Delete(t.left, i, i+1)
			} else if err := p.post(); err != nil {
				return err
			}
		}
	}
}
