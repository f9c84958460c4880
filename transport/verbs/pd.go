package verbs

import (
	"sync"

	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// PD is the protection domain of a card. Its ports, all connections on it and
// all memory share one, so that a buffer is mapped once; devices that stand for
// the card's data-direct path have one of their own.
type PD struct {
	a      *adapter
	direct bool // DMA-BUFs are registered through the data-direct function
	raw    ibv.Object
	cache  mrCache
}

// domain is a protection domain with those who hold it.
type domain struct {
	sync.Mutex
	pd   *PD // protected
	refs int // protected
}

// AcquirePD returns the card's protection domain; every holder releases it.
func (d *Device) AcquirePD() (*PD, error) { return d.adapter.acquirePD(d.direct) }

// domain is the one that devices of either kind share.
func (a *adapter) domain(direct bool) *domain {
	if direct {
		return &a.domains[1]
	}
	return &a.domains[0]
}

func (a *adapter) acquirePD(direct bool) (*PD, error) {
	d := a.domain(direct)
	d.Lock()
	defer d.Unlock()
	if a.closing {
		return nil, report.Errorf(report.Host, "ibv_alloc_pd", "the device is being closed").On(a.name)
	}
	if d.pd == nil {
		raw, errno := a.p.lib.AllocPD(a.context)
		if errno != 0 {
			return nil, fail("ibv_alloc_pd", a.name, errno, "")
		}
		d.pd = &PD{a: a, direct: direct, raw: raw, cache: mrCache{entries: map[mrKey]*mrEntry{}}}
	}
	d.refs++
	return d.pd, nil
}

// Release ends one holder's use. The last one's frees the domain; memory that
// is still registered in it then is an error.
func (pd *PD) Release() error {
	a, d := pd.a, pd.a.domain(pd.direct)
	defer a.closeIdle(false) // behind the domain's lock: it takes both
	d.Lock()
	defer d.Unlock()
	if d.refs--; d.refs > 0 {
		return nil
	}
	d.pd = nil
	if errno := a.p.lib.DeallocPD(pd.raw); errno != 0 {
		return fail("ibv_dealloc_pd", a.name, errno, "%d registrations left", pd.cache.size())
	}
	return nil
}

// owners find whose object an event of the library means.
type owners struct {
	sync.Mutex
	all map[ibv.Object]any // protected; *QP or *CQ
}

func (o *owners) add(raw ibv.Object, owner any) {
	o.Lock()
	defer o.Unlock()
	if o.all == nil {
		o.all = map[ibv.Object]any{}
	}
	o.all[raw] = owner
}

func (o *owners) remove(raw ibv.Object) {
	o.Lock()
	defer o.Unlock()
	delete(o.all, raw)
}

func (o *owners) find(raw ibv.Object) any {
	o.Lock()
	defer o.Unlock()
	return o.all[raw]
}
