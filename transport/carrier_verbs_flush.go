package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs"
)

// flushDepth is how many reads a port has under way.
const flushDepth = 32

// A flush reads through a queue pair that is connected to itself, on each port
// by which a receive may have brought what a GPU must see. Such a queue pair is
// made with its port, but for the ports that a comm begins with, if its lanes
// come later too: then soon after the comm is open, or when a flush waits for it.
// One that cannot be had is tried again by the flush that waits, and ends the
// comm then: a flush cannot be left out.

// loops is what the making of these queue pairs is at.
type loops struct {
	sync.Mutex             // held while they are made
	begun      atomic.Bool // in the background
	wanted     atomic.Bool // by a flush
}

// flushing is what WEFT_FLUSH says, else NCCL's own variable.
func (c *Core) flushing() string {
	mode := c.cfg.Knobs.Text(knob.Flush)
	if mode == "" && c.cfg.Knobs.Int(knob.GDRFlushDisable) != 0 {
		return "never"
	}
	return mode
}

// flushes reports whether a receive through a port may have to be flushed to be seen.
func (v *verbsCarrier) flushes(dev *verbs.Device) bool {
	kinds, _ := dev.GPUMemory()
	return v.kind == fastpath.Recv && v.ctx.core.flushing() != "never" && (v.always || kinds != 0)
}

// flushPlan is how the executor flushes by a port.
func (v *verbsCarrier) flushPlan(p *verbsPort) fastpath.VerbsFlush {
	f := fastpath.VerbsFlush{Needed: v.flushes(p.dev)}
	if p.looped {
		f.QP, f.CQ, f.Depth = p.flush.Pointer(), p.cq.Pointer(), min(p.flush.SendDepth, flushDepth)
	}
	return f
}

// makeLoop makes a port's queue pair, connected to itself. The port has it as
// soon as it is there, so that fences, events and the comm's end mean it too.
func (v *verbsCarrier) makeLoop(p *verbsPort) error {
	v.life.Lock()
	if v.dead || v.fenced.Load() {
		v.life.Unlock()
		return errOver
	}
	c := verbs.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, SendDepth: flushDepth, RecvDepth: 1, Access: verbs.RemoteRead, Cookie: v.cookie}
	q, err := p.dev.NewQP(p.pd, c)
	p.flush = q
	v.life.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.ctx.core.offerLimit())
	defer cancel()
	return q.Connect(ctx, verbs.Path{GID: p.gid, Peer: q.Local(p.gid)})
}

// useLoop hands it to the executor of an open comm.
func (v *verbsCarrier) useLoop(p *verbsPort) error {
	v.life.Lock()
	defer v.life.Unlock()
	if v.dead || v.fenced.Load() {
		return errOver
	}
	p.looped = true
	err := fastpath.AttachFlush(v.fp, p.slot, v.flushPlan(p))
	p.looped = err == nil
	return err
}

// dropLoop ends one that the executor does not have.
func (v *verbsCarrier) dropLoop(p *verbsPort) {
	v.life.Lock()
	defer v.life.Unlock()
	if p.flush != nil {
		v.stuck = errors.Join(v.stuck, p.flush.Close())
		p.flush = nil
	}
}

// makeLoops makes those that are missing.
func (v *verbsCarrier) makeLoops() error {
	v.loops.Lock()
	defer v.loops.Unlock()
	v.life.Lock()
	var missing []*verbsPort
	for _, p := range v.ports {
		if v.flushes(p.dev) && !p.looped {
			missing = append(missing, p)
		}
	}
	v.life.Unlock()
	for _, p := range missing {
		err := v.makeLoop(p)
		if err == nil {
			err = v.useLoop(p)
		}
		if err != nil {
			v.dropLoop(p)
			return fmt.Errorf("a queue pair for flushes: %w", err)
		}
	}
	return nil
}

// warmLoops makes them in the background, once.
func (v *verbsCarrier) warmLoops(s *session.Session) {
	if v.kind != fastpath.Recv || v.ctx.core.cfg.Knobs.Text(knob.Lazy) == "demand" || !v.loops.begun.CompareAndSwap(false, true) {
		return
	}
	s.Growth.Loops.Add(v.ctx.opts.Log, func() {
		v.ctx.core.quiet(s.Life)
		if err := v.makeLoops(); err != nil && !v.comm.Over() {
			v.ctx.opts.Log.Info(report.Net, "%v has none yet, the first flush tries again: %v", v.comm, err)
		}
	})
}

// FlushWaits makes them for a flush. It waits for nothing itself.
func (v *verbsCarrier) FlushWaits() {
	c := v.comm
	if !v.loops.wanted.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer task.Rescue(v.ctx.opts.Log, "iflush", func(err error) { c.Fail(err) })
		if err := v.makeLoops(); err != nil && !errors.Is(err, errOver) {
			c.Fail(v.noLoop(err))
		}
	}()
}

// noLoop is why a flush cannot be.
func (v *verbsCarrier) noLoop(err error) error {
	var e *report.Error
	if errors.As(err, &e) {
		return e.With(v.peer)
	}
	return report.Errorf(report.Host, "iflush", "%w", err).On(v.dev.Name).With(v.peer)
}
