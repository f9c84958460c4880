package comms

import (
	"sync"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/task"
)

// fenced is what a comm asks of a carrier whose cards reach memory by themselves.
type fenced struct {
	by  carrier.OneSided // nil: the CPU moves all bytes
	log report.Logger
}

// fences are the carriers that are being fenced. Whoever has the executor end requests
// holds the lock until the comm is among these: else another thread could find the
// requests ended while cards still use their memory.
var fences fencing

type fencing struct {
	sync.Mutex
	mu  sync.Mutex
	all map[*fenced]int // protected by mu
}

func (f *fencing) count(c *fenced, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*fenced]int{}
	}
	if f.all[c] += n; f.all[c] == 0 {
		delete(f.all, c)
	}
}

// wait returns when the comms that have failed so far touch no memory.
func (f *fencing) wait() {
	f.mu.Lock()
	var all []*fenced
	for c := range f.all {
		all = append(all, c)
	}
	f.mu.Unlock()
	for _, c := range all {
		c.fence()
	}
}

func (c *fenced) fence() {
	if c.by != nil {
		fences.count(c, 1)
		defer fences.count(c, -1)
		c.by.Fence()
	}
}

// later has it fenced without waiting.
func (c *fenced) later() {
	if c.by == nil {
		return
	}
	c.by.Spoil()
	fences.count(c, 1)
	go func() {
		defer task.Rescue(c.log, "fence", task.Nobody)
		defer fences.count(c, -1)
		c.by.Fence()
	}()
}

func (c *fenced) drain() {
	if c.by != nil {
		c.by.Drain()
	}
}

// left is told that the peer has closed its side.
func (c *fenced) left() {
	if c.by != nil {
		c.by.Left()
	}
}
