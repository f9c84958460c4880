package qp

import (
	"sync"

	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
)

// CQ is a completion queue. The C lane polls it by its pointer.
type CQ struct {
	Depth int // completions that it holds
	card  *card.Card
	raw   ibv.Object
	close sync.Once
}

// NewCQ makes a completion queue on a domain's card, for at least depth completions:
// every send and receive request that its queue pairs can hold, since a broken queue
// pair completes them all.
func NewCQ(pd *mr.PD, depth int) (*CQ, error) {
	c := pd.Card()
	if most := c.Attr.MaxCQE; depth < 1 || most > 0 && depth > most {
		return nil, report.Errorf(report.Host, "ibv_create_cq", "%d completions: the device allows 1 to %d", depth, most).On(c.Name).
			Try("use fewer QPs per connection")
	}
	raw, got, errno := c.Lib.CreateCQ(c.Context(), depth)
	for c.Lib.Spares(errno) {
		raw, got, errno = c.Lib.CreateCQ(c.Context(), depth)
	}
	if errno != 0 {
		return nil, fail.Call("ibv_create_cq", c.Name, errno, "%d completions", depth)
	}
	cq := &CQ{Depth: got, card: c, raw: raw}
	c.Own(raw, cq)
	return cq, nil
}

// Pointer is struct ibv_cq*, for the C lane.
func (cq *CQ) Pointer() uintptr { return uintptr(cq.raw) }

// Close destroys the queue; its queue pairs are closed before.
func (cq *CQ) Close() (err error) {
	cq.close.Do(func() {
		cq.card.Disown(cq.raw)
		if errno := cq.card.Lib.DestroyCQ(cq.raw); errno != 0 {
			err = fail.Call("ibv_destroy_cq", cq.card.Name, errno, "")
		}
	})
	return err
}
