package mr

import (
	"sync"

	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// PD is a protection domain of a card. The card's ports, all connections on it and
// all memory share one, so that a buffer is mapped once; devices that stand for
// the card's data-direct path have one of their own.
type PD struct {
	card   *card.Card
	direct bool // DMA-BUFs are registered through the data-direct function
	raw    ibv.Object
	cache  cache

	domain *domain
}

// Domains are the protection domains of a card.
type Domains struct {
	card        *card.Card
	own, direct domain
}

// domain is a protection domain with those who hold it.
type domain struct {
	sync.Mutex
	pd   *PD // protected
	refs int // protected
}

// DomainsOf are those of a card, of which none is made yet.
func DomainsOf(c *card.Card) *Domains { return &Domains{card: c} }

// Acquire returns the card's protection domain, or that of its data-direct path;
// every holder releases it, and meanwhile the card stays open.
func (m *Domains) Acquire(direct bool) (*PD, error) {
	c, d := m.card, &m.own
	if direct {
		d = &m.direct
	}
	d.Lock()
	defer d.Unlock()
	if !c.Hold() {
		return nil, report.Errorf(report.Host, "ibv_alloc_pd", "the device is being closed").On(c.Name)
	}
	if d.pd == nil {
		raw, errno := c.Lib.AllocPD(c.Context())
		if errno != 0 {
			c.Release()
			return nil, fail.Call("ibv_alloc_pd", c.Name, errno, "")
		}
		d.pd = &PD{card: c, direct: direct, raw: raw, cache: cache{entries: map[key]*entry{}}, domain: d}
	}
	d.refs++
	return d.pd, nil
}

// Release ends one holder's use. The last one's frees the domain; memory that
// is still registered in it then is an error.
func (pd *PD) Release() error {
	d := pd.domain
	defer pd.card.Release()
	d.Lock()
	defer d.Unlock()
	if d.refs--; d.refs > 0 {
		return nil
	}
	d.pd = nil
	if errno := pd.card.Lib.DeallocPD(pd.raw); errno != 0 {
		return fail.Call("ibv_dealloc_pd", pd.card.Name, errno, "%d registrations left", pd.cache.size())
	}
	return nil
}

// Card is whose domain it is.
func (pd *PD) Card() *card.Card { return pd.card }

// Object is struct ibv_pd*, for what is made in it.
func (pd *PD) Object() ibv.Object { return pd.raw }
