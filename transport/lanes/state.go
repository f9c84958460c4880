package lanes

import "slices"

// Lanes are those that the executor has, in its order.
func (v *Carrier) Lanes() []*Lane {
	v.life.Lock()
	defer v.life.Unlock()
	return slices.Clone(v.lanes)
}

// Ports are the local ports that they run over.
func (v *Carrier) Ports() []*Port {
	v.life.Lock()
	defer v.life.Unlock()
	return slices.Clone(v.ports)
}

// RingKeys are the peer's keys for what it writes into, by slot.
func (v *Carrier) RingKeys() []uint32 { return ringKeys(v.Ports()) }

// Flushing is by how many of its ports the comm can flush, of those by which it
// may have to.
func (v *Carrier) Flushing() (ready, wanted int) {
	v.life.Lock()
	defer v.life.Unlock()
	for _, p := range v.ports {
		if v.flushes(p.Device) {
			wanted++
			ready += bit(p.looped)
		}
	}
	return ready, wanted
}

// Spoiled reports whether the queue pairs cannot serve again.
func (v *Carrier) Spoiled() bool { return v.fenced.Load() }
