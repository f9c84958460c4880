package card

import (
	"sync"

	"weft/transport/verbs/ibv"
)

// owners find whose object an event of the library means.
type owners struct {
	mu  sync.Mutex
	all map[ibv.Object]any // protected by mu
}

// Own has events of an object of the library be its owner's, until Disown.
func (o *owners) Own(raw ibv.Object, owner any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[ibv.Object]any{}
	}
	o.all[raw] = owner
}

// Disown comes before the object is destroyed.
func (o *owners) Disown(raw ibv.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, raw)
}

// Owner is whose an object is; nil: nobody's.
func (o *owners) Owner(raw ibv.Object) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[raw]
}
