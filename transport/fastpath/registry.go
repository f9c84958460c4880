package fastpath

import "sync"

// registry finds the Go side of a slab by the slab's number.
var registry commTable

type commTable struct {
	mu    sync.RWMutex // protects comms
	comms []*Comm
}

func (t *commTable) add(c *Comm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uint32(len(t.comms)) <= c.index {
		t.comms = append(t.comms, nil)
	}
	t.comms[c.index] = c
}

// remove reports whether c was there.
func (t *commTable) remove(c *Comm) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uint32(len(t.comms)) <= c.index || t.comms[c.index] != c {
		return false
	}
	t.comms[c.index] = nil
	return true
}

func (t *commTable) find(index uint32) *Comm {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if uint32(len(t.comms)) <= index {
		return nil
	}
	return t.comms[index]
}

// onDevice lists the living comms of a device, by index.
func (t *commTable) onDevice(device uint32) []*Comm {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found []*Comm
	for _, c := range t.comms {
		if c != nil && c.device == device {
			found = append(found, c)
		}
	}
	return found
}
