package collnet

import (
	"weft/internal/report"
	"weft/transport/task"
)

// start makes the comm the host's.
func (c *Comm) start() error {
	var err error
	c.id = comms.Reserve()
	if c.block, err = c.ctx.Requests.Open(c.Handle()); err != nil {
		return err
	}
	if err = c.ctx.own(c.ctx.owned.comms, c); err != nil {
		c.ctx.Requests.Close(c.block)
		return err
	}
	comms.Put(c.id, c)
	go c.run()
	return nil
}

// run works until the comm is closed.
func (c *Comm) run() {
	defer close(c.ended)
	defer task.Rescue(c.ctx.Log, "collNet", func(err error) {
		c.pass.Lock()
		defer c.pass.Unlock()
		c.fail(err)
	})
	c.work()
}

// Close ends the comm: no request survives it, and nothing of it goes on.
func (c *Comm) Close() error {
	if _, mine := comms.Take(c.id); !mine {
		return c.errorf(report.Misuse, "closeColl", "the comm was closed before")
	}
	c.pass.Lock()
	c.queue.Lock()
	c.queue.closed = true
	c.queue.Unlock()
	c.take()
	if n := len(c.pending); n > 0 {
		c.ctx.Log.Info(report.Net, "collNet.closeColl on %s: the host gave up %d operation%s in flight, as an abort does", c.name, n, report.Plural(n))
	}
	c.drop()
	c.ctx.Requests.Close(c.block)
	c.pass.Unlock()
	c.rouse()
	<-c.ended
	c.ctx.disown(c)
	return c.release()
}

// release gives back memory and links. The comm's goroutine is not there, or has ended.
func (c *Comm) release() (first error) {
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, t := range c.tracks {
		keep(t.scratch.free())
	}
	left := c.regions.close()
	if l := c.link(); l != nil {
		for _, h := range left {
			keep(l.DeregMr(h))
		}
	}
	for _, l := range c.links() {
		keep(l.Close())
	}
	return first
}
