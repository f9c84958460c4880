package collnet

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"weft/collnet/choose"
	"weft/internal/report"
	"weft/transport/task"
)

// Comm is one rank's part of a collective communicator.
type Comm struct {
	ctx     *Context
	dev     int
	name    string // of the device
	rank    int
	n       int
	id      uint64
	path    choose.Path // what was measured, on all ranks alike
	choices choose.Choices
	tracks  []*track
	block   int // of its requests

	wake  chan struct{} // something was queued that the goroutine must see, or the comm was closed
	ended chan struct{} // its goroutine has returned
	idle  atomic.Bool   // the goroutine sleeps until it is woken
	pass  sync.Mutex    // held by who works, the goroutine or the host's thread; who holds it otherwise keeps both from memory and links

	queue struct {
		sync.Mutex
		posted  []*op               // protected, as all below; not yet seen by the goroutine
		regions map[uintptr]*region // by the handle that the host holds
		local   uintptr             // handles given out where there are no links
		failed  error               // first cause
		closed  bool
	}

	pending  []*op // oldest first; protected by pass, as all below
	chunks   int   // begun so far
	computed int   // bytes that were reduced or copied since Help began
	helped   bool  // the host's thread has worked since the goroutine looked last
}

// Handle is the value that the host holds.
func (c *Comm) Handle() uintptr { return uintptr(c.id) }

// Table is the version of the table that the host uses.
func (c *Comm) Table() int { return c.ctx.Table }

// Log speaks to the host that has c.
func (c *Comm) Log() report.Logger { return c.ctx.Log }

// link is any of c's, through which memory is registered; nil: there is none.
func (c *Comm) link() Link {
	for _, l := range c.tracks[0].sends {
		if l != nil {
			return l
		}
	}
	return nil
}

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

// errorf is an error of a call on c.
func (c *Comm) errorf(cause report.Cause, op, format string, a ...any) *report.Error {
	return report.Errorf(cause, "collNet."+op, format, a...).On(c.name)
}

// lostMark begins what ranks tell each other of one that is lost, so that all name the same one.
const lostMark = "the collective comm lost rank "

// lost says that what connects c to a rank has failed.
func (c *Comm) lost(op string, rank int, l Link, err error) error {
	cause := report.CauseOf(err)
	text := err.Error()
	if i := strings.Index(text, lostMark); i >= 0 { // the rank has it from another
		text = text[i:]
	} else {
		text = fmt.Sprintf("%s%d of %d: %s", lostMark, rank, c.n, text)
	}
	return c.errorf(cause, op, "%w", errors.New(text)).With(fmt.Sprintf("rank %d (%s)", rank, l.Peer()))
}

// fail ends c: what is under way and what is asked from now on fails with the first cause, and the other ranks hear of
// it. pass is held.
func (c *Comm) fail(err error, say func(report.Logger, error)) {
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
		l.Fail(err)
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
	c.ctx.disown(nil, c)
	return c.release()
}

// drop forgets what is pending. pass is held.
func (c *Comm) drop() {
	for _, o := range c.pending {
		_ = o.stage.free() // what fails here stays mapped
	}
	c.pending = nil
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
	c.queue.Lock()
	left := c.queue.regions
	c.queue.regions = nil
	c.queue.Unlock()
	if l := c.link(); l != nil {
		for h := range left {
			keep(l.DeregMr(h))
		}
	}
	for _, l := range c.links() {
		keep(l.Close())
	}
	return first
}

// start makes the comm the host's.
func (c *Comm) start() error {
	var err error
	c.id = comms.Reserve()
	if c.block, err = c.ctx.Requests.Open(c.Handle()); err != nil {
		return err
	}
	if err = own(c.ctx, c.ctx.owned.comms, c); err != nil {
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
		c.fail(err, report.Say)
	})
	c.work()
}
