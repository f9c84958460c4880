package collnet

import (
	"weft/internal/report"
	"weft/transport/task"
)

// mostSmall is the largest operation, in bytes of its larger buffer, that the host's own thread does, as a net's does in
// test: to wake a goroutine for it takes longer. Larger ones would keep that thread from its other work.
const mostSmall = 64 << 10

// small reports whether all that is pending is. pass is held.
func (c *Comm) small() bool {
	for _, o := range c.pending {
		if !o.small {
			return false
		}
	}
	return true
}

// Help does on the caller's thread what can be done now for small operations, and never waits: the host's calls of test
// are what makes those move. It reports whether it has, or there was nothing to do; else the goroutine does the work.
func (c *Comm) Help() bool {
	if !c.pass.TryLock() {
		return false
	}
	defer c.pass.Unlock()
	defer task.Rescue(c.ctx.Log, "collNet", func(err error) { c.fail(err, report.Say) })
	if c.closed() {
		return true
	}
	c.take()
	if !c.small() {
		return false
	}
	c.helped = true
	for moved := true; moved; {
		var err error
		if moved, err = c.step(); err != nil {
			c.fail(err, report.Say)
		}
	}
	return true
}
