package plugin

import (
	"sync"
	"sync/atomic"

	"weft/collnet"
	"weft/internal/report"
)

// netCtx is what a host's ctx stands for: its table, its log, its traffic.
type netCtx struct {
	table        int
	commID       uint64  // of the host's communicator; 0: it tells none
	value        uintptr // what the host holds, from v11 on
	trafficClass int32
	voice        *voice
	log          report.Logger
	net          netContext
	coll         *collnet.Context // of a collNet table
	netEvents    atomic.Uintptr   // the host's callback for them, or 0
	oddClass     sync.Once
}

// fail marks err as an error of this context.
func (c *netCtx) fail(err error) error {
	if err == nil {
		return nil
	}
	return &tableError{err, c.table, c.log}
}

// firstContext: smaller values are table versions, which stand for the one
// context that all communicators of an old table share.
const firstContext = 16

// contexts maps the values that hosts hold to contexts. A value of init is
// generation << 32 | slot + 16, so that a stale one finds nothing; a copy of it
// (comm split) is the same context.
type contexts struct {
	mu    sync.Mutex
	old   map[int]*netCtx // by table; protected by mu
	slots []contextSlot   // protected by mu
	free  []int           // protected by mu
}

type contextSlot struct {
	generation uint32 // of the next context here
	ctx        *netCtx
}

func (t *contexts) add(c *netCtx) uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i int
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		i = len(t.slots)
		t.slots = append(t.slots, contextSlot{generation: 1})
	}
	t.slots[i].ctx = c
	c.value = uintptr(t.slots[i].generation)<<32 | uintptr(i+firstContext)
	return c.value
}

// addOld keeps the context of an old table, unless it has one.
func (t *contexts) addOld(c *netCtx) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.old[c.table] != nil {
		return false
	}
	t.old[c.table] = c
	return true
}

// ofComm is the context of a host's communicator, nil where there is none.
func (t *contexts) ofComm(id uint64) *netCtx {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.slots {
		if id != 0 && s.ctx != nil && s.ctx.commID == id {
			return s.ctx
		}
	}
	return nil
}

// ofTable is the context of an old table, nil before its init.
func (t *contexts) ofTable(table int) *netCtx {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.old[table]
}

// only reports whether no host has used another table.
func (t *contexts) only(table int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.old[table] != nil && len(t.old) == 1 && len(t.slots) == 0
}

// find returns the context of a value that a host passed to call.
func (t *contexts) find(call string, value uintptr) (*netCtx, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if value < firstContext {
		if c := t.old[int(value)]; c != nil {
			return c, nil
		}
		return nil, report.Errorf(report.Misuse, call, "init of table v%d was not called", value)
	}
	if i := t.index(value); i >= 0 {
		return t.slots[i].ctx, nil
	}
	return nil, stale(call, value)
}

// take removes the context: of two finalize calls one gets it.
func (t *contexts) take(call string, value uintptr) (*netCtx, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(value)
	if i < 0 {
		return nil, stale(call, value)
	}
	c := t.slots[i].ctx
	t.slots[i].ctx = nil
	t.slots[i].generation++
	t.free = append(t.free, i)
	return c, nil
}

// index is the slot of a live value, or -1. mu is held.
func (t *contexts) index(value uintptr) int {
	i := int(uint32(value)) - firstContext
	if i < 0 || i >= len(t.slots) || t.slots[i].ctx == nil || t.slots[i].generation != uint32(value>>32) {
		return -1
	}
	return i
}

func stale(call string, value uintptr) error {
	return report.Errorf(report.Misuse, call, "%#x is no context that init gave and finalize has not taken", value)
}
