package verbs

import "sync"

// PD is the protection domain of a card. Its ports, all connections on it and
// all memory share one, so that a buffer is mapped once.
type PD struct {
	a     *adapter
	raw   object
	cache mrCache
}

// AcquirePD returns the card's protection domain; every holder releases it.
func (d *Device) AcquirePD() (*PD, error) { return d.adapter.acquirePD() }

func (a *adapter) acquirePD() (*PD, error) {
	a.domain.Lock()
	defer a.domain.Unlock()
	if a.domain.pd == nil {
		raw, errno := a.p.lib.allocPD(a.context)
		if errno != 0 {
			return nil, fail("ibv_alloc_pd", a.name, errno, "")
		}
		a.domain.pd = &PD{a: a, raw: raw}
	}
	a.domain.refs++
	return a.domain.pd, nil
}

// Release ends one holder's use. The last one's frees the domain; memory that
// is still registered in it then is an error.
func (pd *PD) Release() error {
	a := pd.a
	a.domain.Lock()
	defer a.domain.Unlock()
	if a.domain.refs--; a.domain.refs > 0 {
		return nil
	}
	a.domain.pd = nil
	if errno := a.p.lib.deallocPD(pd.raw); errno != 0 {
		return fail("ibv_dealloc_pd", a.name, errno, "%d registrations left", pd.cache.size())
	}
	return nil
}

// owners find whose object an event of the library means.
type owners struct {
	sync.Mutex
	all map[object]any // protected; *QP or *CQ
}

func (o *owners) add(raw object, owner any) {
	o.Lock()
	defer o.Unlock()
	if o.all == nil {
		o.all = map[object]any{}
	}
	o.all[raw] = owner
}

func (o *owners) remove(raw object) {
	o.Lock()
	defer o.Unlock()
	delete(o.all, raw)
}

func (o *owners) find(raw object) any {
	o.Lock()
	defer o.Unlock()
	return o.all[raw]
}
