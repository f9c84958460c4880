package verbs

import (
	"sync"

	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// CQ is a completion queue. The C lane polls it by its pointer.
type CQ struct {
	Depth int // completions that it holds
	a     *adapter
	raw   ibv.Object
	close sync.Once
}

// NewCQ makes a completion queue for at least depth completions: every send
// and receive request that its queue pairs can hold, since a broken queue pair
// completes them all.
func (pd *PD) NewCQ(depth int) (*CQ, error) {
	a := pd.a
	if most := a.attr.MaxCQE; depth < 1 || most > 0 && depth > most {
		return nil, report.Errorf(report.Host, "ibv_create_cq", "%d completions: the device allows 1 to %d", depth, most).On(a.name).
			Try("use fewer queue pairs on a connection")
	}
	raw, got, errno := a.p.lib.CreateCQ(a.context, depth)
	for a.p.spares(errno) {
		raw, got, errno = a.p.lib.CreateCQ(a.context, depth)
	}
	if errno != 0 {
		return nil, fail("ibv_create_cq", a.name, errno, "%d completions", depth)
	}
	cq := &CQ{Depth: got, a: a, raw: raw}
	a.owners.add(raw, cq)
	return cq, nil
}

// Pointer is struct ibv_cq*, for the C lane.
func (cq *CQ) Pointer() uintptr { return uintptr(cq.raw) }

// Close destroys the queue; its queue pairs are closed before.
func (cq *CQ) Close() (err error) {
	cq.close.Do(func() {
		cq.a.owners.remove(cq.raw)
		if errno := cq.a.p.lib.DestroyCQ(cq.raw); errno != 0 {
			err = fail("ibv_destroy_cq", cq.a.name, errno, "")
		}
	})
	return err
}
