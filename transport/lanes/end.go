package lanes

import (
	"errors"

	"weft/internal/report"
	"weft/transport/fastpath"
)

// destroy ends what exists.
func (v *Carrier) destroy() {
	v.destroyed.Do(func() {
		v.shared.Watch.Remove(v)
		v.endGrowth()
		_ = v.dismantle(nil) // it is said
	})
}

// dismantle ends what exists, in an order in which nothing is used after its
// end, but for what k has of it.
func (v *Carrier) dismantle(k *Kit) error {
	v.life.Lock()
	defer v.life.Unlock()
	err := v.stuck
	for _, p := range v.ports {
		if k == nil {
			err = errors.Join(err, p.unqueue(v.lanes))
		}
		err = errors.Join(err, p.unregister())
	}
	if v.slab != nil {
		v.slab.Close()
	}
	if v.fp != nil && err == nil { // what the device may still write to is never used again
		fastpath.DetachVerbs(v.fp)
		v.fp.Free()
	}
	for _, p := range v.ports {
		if k != nil {
			p.pd = nil
		}
		err = errors.Join(err, v.leavePort(p))
	}
	if err != nil {
		report.Say(v.Log, err)
	}
	return err
}
