package collnet

import (
	"sync"
	"sync/atomic"

	"weft/collnet/choose"
	"weft/collnet/schedule"
	"weft/internal/report"
	"weft/transport/task"
)

// Comm is one rank's part of a collective communicator.
type Comm struct {
	self
	ctx     *Context
	dev     int
	id      uint64
	path    choose.Path // what was measured, on all ranks alike
	choices choose.Choices
	tracks  []*track
	regions regions
	block   int // of its requests

	wake  chan struct{} // something was queued that the goroutine must see, or the comm was closed
	ended chan struct{} // its goroutine has returned
	idle  atomic.Bool   // the goroutine sleeps until it is woken
	pass  sync.Mutex    // held by who works, the goroutine or the host's thread; who holds it otherwise keeps both from memory and links

	queue struct {
		sync.Mutex
		posted []*op // protected, as all below; not yet seen by the goroutine
		failed error // first cause
		closed bool
	}

	pending  []*op // oldest first; protected by pass, as all below
	ways     map[schedule.Op]*way
	parts    *int      // of the plans that ways keep
	chunks   int       // begun so far
	computed int       // bytes that were reduced or copied since Help began
	helped   bool      // the host's thread has worked since the goroutine looked last
	awaited  []uintptr // requests of the net that test looks at
	others   []uintptr // those of them that nothing waits for, while the list is made
}

// comms are those of the process, whatever number of contexts.
var comms = task.NewIDs[*Comm](commKind << 60)

// CommOf finds the comm behind a value that the host gave.
func CommOf(handle uintptr) (*Comm, error) {
	if c, ok := comms.Get(uint64(handle)); ok {
		return c, nil
	}
	return nil, report.Errorf(report.Misuse, "collNet comm", "%#x is no open comm: closed already, or not weft's", uint64(handle))
}

// Handle is the value that the host holds.
func (c *Comm) Handle() uintptr { return uintptr(c.id) }

// Table is the version of the table that the host uses.
func (c *Comm) Table() int { return c.ctx.Table }

// Log speaks to the host that has c.
func (c *Comm) Log() report.Logger { return c.ctx.Log }

// link is one of c's, any, on which memory is registered; nil: there is none.
func (c *Comm) link() Link { return c.tracks[0].link() }

// links are all of c's.
func (c *Comm) links() (all []Link) {
	for _, t := range c.tracks {
		for r := range c.n {
			for _, l := range []Link{t.sends[r], t.receives[r]} {
				if l != nil {
					all = append(all, l)
				}
			}
		}
	}
	return all
}

// take moves what was posted to the list of what is pending. pass is held.
func (c *Comm) take() {
	c.queue.Lock()
	defer c.queue.Unlock()
	c.pending = append(c.pending, c.queue.posted...)
	c.queue.posted = c.queue.posted[:0]
}

// rouse wakes the goroutine.
func (c *Comm) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Comm) closed() bool {
	c.queue.Lock()
	defer c.queue.Unlock()
	return c.queue.closed
}

// fail ends c: what is under way and what is asked from now on fails with the first cause, and the other ranks hear of
// it. pass is held.
func (c *Comm) fail(err error) { c.end(err, report.Say, Link.Fail) }

// giveUp does so where the host itself ends what is under way: an abort, no failure. pass is held.
func (c *Comm) giveUp(err error) { c.end(err, report.Mention, Link.GiveUp) }

// end is what both do; tell is for each of the links.
func (c *Comm) end(err error, say func(report.Logger, error), tell func(Link, error)) {
	c.queue.Lock()
	first := c.queue.failed == nil
	if first {
		c.queue.failed = err
	}
	c.queue.Unlock()
	if !first {
		return
	}
	say(c.ctx.Log, err)
	code := c.ctx.Code(err, c.ctx.Table)
	for _, l := range c.links() {
		tell(l, err)
	}
	c.take()
	for _, o := range c.pending {
		c.ctx.Requests.Fail(o.request, code)
	}
	c.drop()
	for _, t := range c.tracks {
		t.stop()
	}
}

// drop forgets what is pending. pass is held.
func (c *Comm) drop() {
	for _, o := range c.pending {
		_ = o.stage.free() // what fails here stays mapped
	}
	c.pending = nil
}
