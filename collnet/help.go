package collnet

import "weft/transport/task"

// mostSteps is for how many the caller's thread stays, while messages come and go. It leaves earlier where it has computed.
const mostSteps = 16

// Help does on the caller's thread some of what can be done now, and never waits: the host's calls of test make its
// operations move, as a net's do. To leave that to the goroutine takes a wake-up for each round, and a core that the host's
// thread, which asks all the time, has taken. It reports whether it could; else the goroutine is at work.
func (c *Comm) Help() bool {
	if !c.pass.TryLock() {
		return false
	}
	defer c.pass.Unlock()
	c.help()
	return true
}

// help is Help with pass held.
func (c *Comm) help() {
	defer task.Rescue(c.ctx.Log, "collNet", c.fail)
	if c.closed() {
		return
	}
	c.take()
	c.helped, c.computed = true, 0
	moved := true
	for i := 0; i < mostSteps && moved && c.computed < sliceOf; i++ {
		var err error
		if moved, err = c.step(); err != nil {
			c.fail(err)
		}
	}
	c.await(moved)
}

// await has the host's test look by itself at the messages without which nothing can move. Where something else could
// (moved, or an operation that was posted meanwhile), it calls Help. pass is held.
func (c *Comm) await(moved bool) {
	c.awaited, c.others = c.awaited[:0], c.others[:0]
	for _, t := range c.tracks {
		c.awaited, c.others = t.awaits(c.awaited, c.others)
	}
	c.awaited = append(c.awaited, c.others...)
	c.queue.Lock()
	defer c.queue.Unlock()
	if moved || len(c.queue.posted) > 0 || len(c.awaited) > MaxAwaited {
		c.awaited = c.awaited[:0]
	}
	c.ctx.Requests.Await(c.block, c.awaited)
}
