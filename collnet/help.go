package collnet

import (
	"weft/internal/report"
	"weft/transport/task"
)

// Help does on the caller's thread some of what can be done now, and never waits: the host's calls of test make its
// operations move, as a net's do. To leave that to the goroutine takes a wake-up for each round, and a core that the host's
// thread, which asks all the time, has taken. It reports whether it could; else the goroutine is at work.
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
	c.helped = true
	for c.computed = 0; c.computed < sliceOf; {
		moved, err := c.step()
		if err != nil {
			c.fail(err, report.Say)
		}
		if !moved {
			break
		}
	}
	return true
}
