package collnet

import (
	"time"

	"golang.org/x/sys/unix"

	"weft/collnet/schedule"
	"weft/internal/report"
)

// How the goroutine of a comm waits. Its own thread moves the bytes of what is in flight, so that it looks again soon.
const (
	spin = 20 * time.Microsecond // without anything to do, before it naps, or sleeps until the next operation
	nap  = 20 * time.Microsecond // between two looks at what is in flight
)

// take has the goroutine's list know of what was posted. pass is held.
func (c *Comm) take() {
	c.queue.Lock()
	defer c.queue.Unlock()
	c.pending = append(c.pending, c.queue.posted...)
	c.queue.posted = c.queue.posted[:0]
}

// rouse has the goroutine look.
func (c *Comm) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// work runs until the comm is closed.
func (c *Comm) work() {
	quiet := time.Now() // since when there was nothing to do
	for {
		busy, moved := c.once()
		if c.over() {
			return
		}
		switch {
		case moved:
			quiet = time.Now()
		case time.Since(quiet) < spin:
		case busy:
			doze()
		default:
			<-c.wake
			quiet = time.Now()
		}
	}
}

// naps are those that may be under way in the kernel: each takes one of the few threads that there are.
var naps = make(chan struct{}, 3)

// doze is a nap; one of Go's own timers takes a millisecond.
func doze() {
	select {
	case naps <- struct{}{}:
		t := unix.NsecToTimespec(int64(nap))
		_ = unix.Nanosleep(&t, nil) // a signal ends it early
		<-naps
	default:
		time.Sleep(nap)
	}
}

func (c *Comm) over() bool {
	c.queue.Lock()
	defer c.queue.Unlock()
	return c.queue.closed
}

// once does what can be done now.
func (c *Comm) once() (busy, moved bool) {
	c.pass.Lock()
	defer c.pass.Unlock()
	if c.over() {
		return false, false
	}
	c.take()
	moved, err := c.step()
	if err != nil {
		c.fail(err, report.Say)
	}
	return len(c.pending) > 0, moved
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
		if !o.begun {
			if *failed = c.cut(o); *failed != nil {
				return false
			}
		}
		if len(o.chunks) == 0 {
			continue
		}
		if *failed = t.begin(o, o.chunks[0], int32(c.chunks&0x7fffffff)); *failed != nil {
			return false
		}
		o.chunks = o.chunks[1:]
		c.chunks++
		return true
	}
	return false
}

// cut chooses an algorithm and cuts the operation for it. A large buffer of several parts is staged in one: other ranks'
// plans do not know of them.
func (c *Comm) cut(o *op) error {
	o.algorithm, o.order = c.choices.Pick(o.what)
	o.begun = true
	if o.what.Kind != schedule.AllReduce && o.what.Window.Len == 0 {
		return nil
	}
	o.chunks = schedule.Chunks(o.what, o.algorithm, int64(c.ctx.Chunk))
	o.left = len(o.chunks)
	large := o.parts()
	if len(large) == 1 {
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

// parts is the large buffer.
func (o *op) parts() memory {
	if o.what.Kind == schedule.ReduceScatter {
		return o.send
	}
	return o.recv
}

// buffer is a span of one of the operation's buffers.
func (o *op) buffer(m memory, off, size int) Buffer {
	if len(m) > 1 {
		return o.stage.at(off, size)
	}
	return Buffer{Address: m[0].address + uintptr(off), Size: size, Handle: m[0].handle}
}

// end gives the host its result, where that was staged.
func (o *op) end() error {
	if o.what.Kind == schedule.AllGather && len(o.recv) > 1 {
		o.recv.copyFrom(o.stage.address)
	}
	return o.stage.free()
}
