package collnet

import (
	"time"

	"weft/collnet/schedule"
)

// rest is for how many ticks without an operation the goroutine looks on, before it sleeps until it is woken.
const rest = 20

// work runs until the comm is closed. It is for a host that does not ask after what it has posted; beside one that does,
// and so works itself, it only looks whether that goes on.
func (c *Comm) work() {
	quiet := time.Now() // since when there was nothing to do
	ticks := rest
	pause := tick // before the next look at a host that works; each look takes a core from somebody
	for {
		t := c.once()
		if !t.helped {
			pause = tick
		}
		switch {
		case t.closed:
			return
		case t.moved:
			quiet = time.Now()
		case t.helped:
			ticks = 0
			c.sleep(pause)
			pause = min(2*pause, longest)
		case time.Since(quiet) < spin:
		case t.busy:
			doze()
		case ticks < rest:
			ticks++
			c.sleep(tick)
		case c.rests():
			<-c.wake
			c.idle.Store(false)
			quiet = time.Now()
		}
	}
}

// sleep ends early if the goroutine is woken.
func (c *Comm) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.wake:
	case <-t.C:
	}
}

// rests reports whether nothing is pending: who posts from now on wakes the goroutine.
func (c *Comm) rests() bool {
	c.pass.Lock()
	defer c.pass.Unlock()
	c.take()
	c.idle.Store(len(c.pending) == 0)
	return c.idle.Load()
}

// turn is what one look at a comm has found.
type turn struct {
	closed bool
	helped bool // the host's thread does what there is
	busy   bool // operations are pending
	moved  bool
}

// once does what can be done now, unless the host's thread does it.
func (c *Comm) once() (t turn) {
	c.pass.Lock()
	defer c.pass.Unlock()
	if c.closed() {
		return turn{closed: true}
	}
	c.take()
	looked := c.ctx.Requests.Looked(c.block)
	if c.helped || looked {
		c.helped = false
		return turn{helped: true}
	}
	moved, err := c.step()
	if err != nil {
		c.fail(err)
	}
	c.await(moved)
	return turn{busy: len(c.pending) > 0, moved: moved}
}

func (c *Comm) step() (moved bool, err error) {
	for c.begin(&err) {
		moved = true
	}
	if err != nil {
		return false, err
	}
	for _, t := range c.tracks {
		if t.op == nil {
			continue
		}
		did, err := t.step()
		if err != nil {
			return false, err
		}
		moved = moved || did
		c.computed += t.computed
	}
	for len(c.pending) > 0 && c.pending[0].done() {
		o := c.pending[0]
		if err := o.end(); err != nil {
			return false, err
		}
		c.ctx.Requests.Done(o.request, o.size)
		c.pending[0] = nil
		c.pending = c.pending[1:]
		moved = true
	}
	return moved, nil
}

// begin gives the next chunk to the next track, which must be free: chunks take the tracks in turn, on all ranks alike.
func (c *Comm) begin(failed *error) bool {
	t := c.tracks[c.chunks%len(c.tracks)]
	if t.op != nil {
		return false
	}
	for _, o := range c.pending {
		if o.way == nil {
			if *failed = c.cut(o); *failed != nil {
				return false
			}
		}
		if o.begun() {
			continue
		}
		if *failed = t.begin(o, int32(c.chunks&0x7fffffff)); *failed != nil {
			return false
		}
		c.chunks++
		return true
	}
	return false
}

// cut finds the operation's way. A large buffer of several parts is staged in one: other ranks' plans do not know of them.
func (c *Comm) cut(o *op) error {
	o.way = c.way(o.what)
	o.left = len(o.way.chunks)
	large := o.parts()
	if o.left == 0 || len(large) == 1 {
		return nil
	}
	if err := o.stage.grow(c.link(), o.what.Elem*int(o.what.Window.Len)); err != nil {
		return err
	}
	if o.what.Kind == schedule.ReduceScatter {
		large.copyTo(o.stage.address)
	}
	return nil
}
