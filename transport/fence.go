package transport

import (
	"sync"

	"weft/transport/carrier"
	"weft/transport/task"
)

// What a comm asks of a carrier whose cards reach memory by themselves.

// fences are the comms that are being fenced. The lock is held by who has the
// executor end requests under way, until the comm is among them: else another could
// find its requests ended, and memory in use still.
var fences fencing

type fencing struct {
	sync.Mutex
	mu  sync.Mutex
	all map[*Comm]int // protected by mu
}

func (f *fencing) count(c *Comm, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*Comm]int{}
	}
	if f.all[c] += n; f.all[c] == 0 {
		delete(f.all, c)
	}
}

// wait returns when the comms that have failed so far touch no memory.
func (f *fencing) wait() {
	f.mu.Lock()
	var all []*Comm
	for c := range f.all {
		all = append(all, c)
	}
	f.mu.Unlock()
	for _, c := range all {
		c.fence()
	}
}

func (c *Comm) fence() {
	if o, is := c.carrier.(carrier.OneSided); is {
		fences.count(c, 1)
		defer fences.count(c, -1)
		o.Fence()
	}
}

func (c *Comm) fenceLater() {
	o, is := c.carrier.(carrier.OneSided)
	if !is {
		return
	}
	o.Spoil()
	fences.count(c, 1)
	go func() {
		defer task.Rescue(c.ctx.opts.Log, "fence", task.Nobody)
		defer fences.count(c, -1)
		o.Fence()
	}()
}

func (c *Comm) drain() {
	if o, is := c.carrier.(carrier.OneSided); is {
		o.Drain()
	}
}

// left is told that the peer has closed its side.
func (c *Comm) left() {
	if o, is := c.carrier.(carrier.OneSided); is {
		o.Left()
	}
}
