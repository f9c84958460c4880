package lanes

import (
	"context"
	"errors"
	"fmt"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
)

// A flush reads through a queue pair that is connected to itself, on each port
// by which a receive may have brought what a GPU must see. Such a queue pair is
// made with its port. For a comm that gets further lanes later, those of its first
// ports come later too: soon after it is open, or when a flush waits for one. When
// one cannot be had, the flush that waits tries again, and if that fails too the
// comm ends: a flush cannot be left out.

// flushPlan is how the executor flushes by a port.
func (v *Carrier) flushPlan(p *onPort) fastpath.VerbsFlush {
	f := fastpath.VerbsFlush{Needed: v.flushes(p.device)}
	if p.looped {
		f.QP, f.CQ, f.Depth = p.loop.Pointer(), p.cq.Pointer(), min(p.loop.SendDepth, flushDepth)
	}
	return f
}

// makeLoop makes a port's queue pair, connected to itself. The port has it as
// soon as it is there, so that fences, events and the comm's end mean it too.
func (v *Carrier) makeLoop(p *onPort) error {
	v.life.Lock()
	if v.dead || v.fenced.Load() {
		v.life.Unlock()
		return errOver
	}
	c := qp.Config{SendCQ: p.cq, RecvCQ: p.cq, SendDepth: flushDepth, RecvDepth: 1, Access: ibv.RemoteRead, Cookie: v.cookie}
	q, err := qp.New(p.device, p.pd, c)
	p.loop = q
	v.life.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.shared.OfferLimit())
	defer cancel()
	return q.Connect(ctx, qp.Path{GID: p.gid, Peer: q.Local(p.gid)})
}

// useLoop hands it to the executor of an open comm.
func (v *Carrier) useLoop(p *onPort) error {
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
func (v *Carrier) dropLoop(p *onPort) {
	v.life.Lock()
	defer v.life.Unlock()
	if p.loop != nil {
		v.stuck = errors.Join(v.stuck, p.loop.Close())
		p.loop = nil
	}
}

// makeLoops makes those that are missing.
func (v *Carrier) makeLoops() error {
	v.loops.Lock()
	defer v.loops.Unlock()
	v.life.Lock()
	var missing []*onPort
	for _, p := range v.ports {
		if v.flushes(p.device) && !p.looped {
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
			return fmt.Errorf("flush QP: %w", err)
		}
	}
	return nil
}

// warmLoops makes them in the background, once.
func (v *Carrier) warmLoops(s *session.Session) {
	if v.Kind != fastpath.Recv || v.shared.Knobs.Text(knob.Lazy) == "demand" || !v.loops.begun.CompareAndSwap(false, true) {
		return
	}
	s.Background.Loops.Add(v.Log, func() {
		v.shared.quiet(s.Life)
		if err := v.makeLoops(); err != nil && !v.comm.Over() {
			v.Log.Info(report.Net, "%v: no flush QP yet, the first flush tries again: %v", v.comm, err)
		}
	})
}

// Wants makes them for a flush that waits. It waits for nothing itself.
func (v *Carrier) Wants() {
	c := v.comm
	if !v.loops.wanted.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer task.Rescue(v.Log, "iflush", func(err error) { c.Fail(err) })
		if err := v.makeLoops(); err != nil && !errors.Is(err, errOver) {
			c.Fail(v.noLoop(err))
		}
	}()
}

// noLoop is why a flush cannot be.
func (v *Carrier) noLoop(err error) error {
	var e *report.Error
	if errors.As(err, &e) {
		return e.With(v.Peer)
	}
	return report.Errorf(report.Host, "iflush", "%w", err).On(v.Device.Name).With(v.Peer)
}
