package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// connector is a connect that the host polls. The host's handle holds nothing
// of it but a number.
type connector struct {
	dial
	state  uint64
	wait   fastpath.Wait // of the host's polls
	cancel context.CancelCauseFunc
	polled atomic.Bool // in Go, since the reaper looked last
	reap   *time.Timer

	mu   sync.Mutex
	done bool   // protected by mu, as all below
	comm *ready // until a poll takes it
	err  error
}

var errAbandoned = errors.New("the connect was abandoned")

// Connect begins or polls the connect to the listen behind handle: nil, nil
// while it is under way. It writes nothing but the handle's connector state.
func (x *Context) Connect(dev int, trafficClass int32, handle []byte) (*comms.Comm, error) {
	if k := x.connectorOf(handle); k != nil {
		return k.poll(handle)
	}
	h, err := wire.ParseHandle(handle)
	if err != nil {
		return nil, report.Errorf(report.Usage, "connect", "%w", err).
			Try("the listening rank runs another plugin or another version of weft; install the same on both hosts")
	}
	d, err := x.devices.Get("connect", dev)
	if err != nil {
		return nil, err
	}
	if err := x.net.Outside(&h); err != nil {
		return nil, err
	}
	if trafficClass < 0 {
		trafficClass = x.opts.TrafficClass
	}
	k := &connector{dial: dial{ctx: x, dev: d, handle: h, trafficClass: trafficClass}}
	k.state = uint64(x.connSalt)<<32 | uint64(x.nextState.Add(1))
	k.wait = fastpath.ConnectWait(k.state, h.ListenID)
	ctx, cancel := context.WithCancelCause(context.Background())
	k.cancel = cancel
	limit := x.cfg.Knobs.Seconds(knob.ConnectTimeout)
	k.mu.Lock()
	k.reap = time.AfterFunc(limit, func() { k.timeUp(limit) })
	k.mu.Unlock()
	k.wait.Begin()
	if !own(x, x.owned.connectors, k.state, asking(k)) {
		k.wait.End()
		k.reap.Stop()
		return nil, errFinalized("connect")
	}
	wire.PutState(handle, k.state)
	go k.run(ctx)
	return nil, nil
}

// connectorOf finds the connect that a handle belongs to. A state that this
// context did not write, or wrote for another listen, means nothing.
func (x *Context) connectorOf(handle []byte) *connector {
	state, id := wire.State(handle)
	if state == 0 {
		return nil
	}
	x.owned.Lock()
	defer x.owned.Unlock()
	k, _ := x.owned.connectors[state].(*connector)
	if k == nil || k.handle.ListenID != id {
		return nil
	}
	return k
}

// poll returns the result once it is there; the connector ends with it. The peer's
// accept has the comm only then: NCCL may begin several connects of which it wants
// the first that is done, and polls the others no more (up to 2.26, with PXN). Their
// accepts must not be done before.
func (k *connector) poll(handle []byte) (*comms.Comm, error) {
	k.polled.Store(true)
	k.mu.Lock()
	done, comm, err := k.done, k.comm, k.err
	k.comm = nil
	k.mu.Unlock()
	if !done {
		return nil, nil
	}
	k.forget()
	wire.PutState(handle, 0)
	if comm == nil {
		return nil, err
	}
	return comm.launch(&k.dial)
}

func (k *connector) forget() {
	disown(k.ctx, k.ctx.owned.connectors, k.state)
	k.wait.End()
	k.mu.Lock()
	k.reap.Stop()
	k.mu.Unlock()
	k.cancel(nil)
}

// finish stores the result, or throws it away when nobody will ask.
func (k *connector) finish(c *ready, err error) {
	k.mu.Lock()
	over := k.done
	if !over {
		k.done, k.comm, k.err = true, c, err
	}
	k.mu.Unlock()
	if over && c != nil {
		c.discard("the connect was given up")
	}
	k.wait.End()
	fastpath.ProgressWake()
}

func (k *connector) on() *device.Device { return k.dev }

// abandon ends a connect that the host gave up.
func (k *connector) abandon() {
	k.cancel(errAbandoned)
	k.mu.Lock()
	comm := k.comm
	k.done, k.comm, k.err = true, nil, errFinalized("connect")
	k.mu.Unlock()
	if comm != nil {
		comm.discard("the connect was given up")
	}
	k.forget()
}

// timeUp runs at the deadline: a connect under way has failed, one that nobody
// has polled for as long is swept, one that is polled is looked at again later.
func (k *connector) timeUp(limit time.Duration) {
	defer task.Rescue(k.ctx.opts.Log, "connect", func(err error) { k.finish(nil, err) })
	k.mu.Lock()
	done := k.done
	asked := k.wait.Asked()
	idle := !k.polled.Swap(false) && !asked
	if !idle {
		k.reap.Reset(limit)
	}
	k.mu.Unlock()
	if !done {
		k.cancel(fmt.Errorf("no answer within %v", limit))
	}
	if idle {
		k.abandon()
	}
}

// run connects when it is its turn. Until then thousands may wait here, on the stacks
// that goroutines begin with.
func (k *connector) run(ctx context.Context) {
	defer task.Rescue(k.ctx.opts.Log, "connect", func(err error) { k.finish(nil, err) })
	leave, err := k.ctx.outgoing.Enter(ctx)
	if err != nil {
		k.finish(nil, k.lost(err, 1))
		return
	}
	task.DeepStack()
	k.try(ctx, leave)
}

// try connects, again and again as NCCL_SOCKET_RETRY_CNT says; leave gives back the slot
// of the first attempt.
func (k *connector) try(ctx context.Context, leave func()) {
	mine := k.ctx.hello(k.dev)
	by := rendezvous.Opening{Role: wire.RoleComm, First: mine.Append(nil), Options: tcp.DataOptions(k.ctx.cfg.Knobs, k.trafficClass)}
	paths := rendezvous.Paths(k.dev.Interfaces(), &k.handle)
	retries := int(k.ctx.cfg.Knobs.Int(knob.SocketRetryCnt))
	sleep := time.Duration(k.ctx.cfg.Knobs.Int(knob.SocketRetrySleep)) * time.Millisecond
	var slow error // of an earlier try: it says more than that the time is over
	finish := func(c *ready, err error) {
		if err != nil && slow != nil && ctx.Err() != nil {
			err = slow
		}
		k.finish(c, err)
	}
	for n := 1; ; n++ {
		var c *ready
		w, err := k.ctx.net.Race(ctx, &k.handle, paths, by)
		if err == nil {
			c, err = k.complete(ctx, w)
		}
		leave()
		lost := (*rendezvous.NarrowError)(nil)
		switch narrow := errors.As(err, &lost); {
		case narrow && k.ctx.net.Narrow.Smaller(lost):
			others := slices.DeleteFunc(paths, func(p rendezvous.Path) bool { return p == lost.Path })
			paths, n = append([]rendezvous.Path{lost.Path}, others...), n-1
		case narrow:
			finish(nil, k.classify(err, w))
			return
		case w == nil:
			if n > retries || !rendezvous.Again(err) || !pause(ctx, time.Duration(n)*sleep) {
				finish(nil, k.lost(err, n))
				return
			}
		case n <= retries && rendezvous.TimedOut(err) && ctx.Err() == nil:
			slow = err // its process may only have been slow; its host knows nothing of the comm before go
			if !pause(ctx, time.Duration(n)*sleep) {
				finish(c, err)
				return
			}
		default:
			finish(c, err)
			return
		}
		if leave, err = k.ctx.outgoing.Enter(ctx); err != nil {
			finish(nil, k.lost(err, n+1))
			return
		}
	}
}

// pause sleeps unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
