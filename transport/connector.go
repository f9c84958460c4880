package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
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
	ctx          *Context
	core         *Core
	dev          *device.Device
	handle       wire.Handle
	state        uint64
	trafficClass int32
	cancel       context.CancelCauseFunc
	polled       atomic.Bool // since the reaper looked last
	reap         *time.Timer

	mu   sync.Mutex
	done bool   // protected by mu, as all below
	comm *ready // until a poll takes it
	err  error
}

var errAbandoned = errors.New("the connect was abandoned")

// Connect begins or polls the connect to the listen behind handle: nil, nil
// while it is under way. It writes nothing but the handle's connector state.
func (x *Context) Connect(dev int, trafficClass int32, handle []byte) (*Comm, error) {
	if k := x.connectorOf(handle); k != nil {
		return k.poll(handle)
	}
	h, err := wire.ParseHandle(handle)
	if err != nil {
		return nil, report.Errorf(report.Usage, "connect", "%w", err).
			Try("the listening rank runs another plugin or another version of weft; install the same on both hosts")
	}
	d, err := x.core.devices.Get("connect", dev)
	if err != nil {
		return nil, err
	}
	if err := x.core.net.Outside(&h); err != nil {
		return nil, err
	}
	if trafficClass < 0 {
		trafficClass = x.opts.TrafficClass
	}
	k := &connector{ctx: x, core: x.core, dev: d, handle: h, trafficClass: trafficClass}
	k.state = uint64(x.core.connSalt)<<32 | uint64(x.core.nextState.Add(1))
	ctx, cancel := context.WithCancelCause(context.Background())
	k.cancel = cancel
	limit := x.core.cfg.Knobs.Seconds(knob.ConnectTimeout)
	k.mu.Lock()
	k.reap = time.AfterFunc(limit, func() { k.timeUp(limit) })
	k.mu.Unlock()
	if !own(x, x.owned.connectors, k.state, k) {
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
	k := x.owned.connectors[state]
	if k == nil || k.handle.ListenID != id {
		return nil
	}
	return k
}

// poll returns the result once it is there; the connector ends with it. The peer's
// accept has the comm only then: NCCL may begin several connects of which it wants
// the first that is done, and polls the others no more (up to 2.26, with PXN). Their
// accepts must not be done before.
func (k *connector) poll(handle []byte) (*Comm, error) {
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
	return k.launch(comm)
}

func (k *connector) forget() {
	disown(k.ctx, k.ctx.owned.connectors, k.state)
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
	fastpath.ProgressWake()
}

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
	idle := !k.polled.Swap(false)
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

// run connects, trying again as NCCL_SOCKET_RETRY_CNT says.
func (k *connector) run(ctx context.Context) {
	defer task.Rescue(k.ctx.opts.Log, "connect", func(err error) { k.finish(nil, err) })
	o := tcp.DataOptions(k.core.cfg.Knobs, k.trafficClass)
	ways := rendezvous.Ways(k.dev.Interfaces(), &k.handle)
	retries := int(k.core.cfg.Knobs.Int(knob.SocketRetryCnt))
	sleep := time.Duration(k.core.cfg.Knobs.Int(knob.SocketRetrySleep)) * time.Millisecond
	var slow error // of an earlier try: it says more than that the time is over
	end := func(c *ready, err error) {
		if err != nil && slow != nil && ctx.Err() != nil {
			err = slow
		}
		k.finish(c, err)
	}
	for n := 1; ; n++ {
		leave, err := k.core.outgoing.Enter(ctx)
		if err != nil {
			end(nil, k.lost(err, n))
			return
		}
		w, err := k.core.net.Race(ctx, &k.handle, ways, o)
		if err == nil {
			c, err := k.complete(ctx, w, o)
			leave()
			if lost := (*rendezvous.NarrowError)(nil); errors.As(err, &lost) && k.core.net.Narrow.Smaller(lost) {
				ways, n = []rendezvous.Path{w.Path}, n-1
				continue
			}
			if n <= retries && rendezvous.Late(err) && ctx.Err() == nil {
				slow = err // its process may only have been slow; its host knows nothing of the comm before go
				if pause(ctx, time.Duration(n)*sleep) {
					continue
				}
			}
			end(c, err)
			return
		}
		leave()
		if n > retries || !rendezvous.Again(err) || !pause(ctx, time.Duration(n)*sleep) {
			end(nil, k.lost(err, n))
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

// lost says why no address answered as the listener.
func (k *connector) lost(err error, rounds int) error {
	if task.Exhausted(err) {
		return task.NoFiles("connect", err).On(k.dev.Name)
	}
	e := report.Errorf(report.Network, "connect", "%w (%d rounds)", err, rounds).On(k.dev.Name).With(k.peer(nil))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.Try("the peer's process has ended, or a firewall rejects its ports: see WEFT_PORT_RANGE")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return e.Try("no route from %s to the peer: see NCCL_SOCKET_IFNAME on both hosts", k.dev.Name)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Cause = report.Host
		return e.Try("%s lost its address, or no local port is free: see net.ipv4.ip_local_port_range", k.dev.Name)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return e.Try("the peer closed this listen already, or something else has its port")
	}
	return e.Try("packets to the peer are lost: a firewall drops them, or the address belongs to another network; see NCCL_SOCKET_IFNAME and WEFT_PORT_RANGE")
}

// peer names the other side as well as is known.
func (k *connector) peer(w *rendezvous.Won) string {
	if w != nil {
		return w.Conn.Remote().String()
	}
	return k.handle.Addrs[0].AddrPort().String()
}

// complete takes the winner from frame 3 to a comm that is ready.
func (k *connector) complete(ctx context.Context, w *rendezvous.Won, o tcp.Options) (*ready, error) {
	w.Conn.SetDeadline(time.Now().Add(k.core.timeout))
	uncut := rendezvous.CutOnCancel(ctx, w.Conn)
	c, err := k.outbound(ctx, w, o)
	uncut()
	if err != nil {
		w.Conn.Close()
		return nil, k.classify(err, w)
	}
	return c, nil
}

// classify keeps an error that knows its cause and gives others the peer's.
func (k *connector) classify(err error, w *rendezvous.Won) error {
	var e *report.Error
	if errors.As(err, &e) {
		if e.Dev == "" {
			e.Dev = k.dev.Name
		}
		return err
	}
	if task.Exhausted(err) {
		return task.NoFiles("connect", err).On(k.dev.Name)
	}
	if lost := (*rendezvous.NarrowError)(nil); errors.As(err, &lost) {
		return report.Errorf(report.Network, "connect", "%w", err).On(k.dev.Name).With(k.peer(w)).
			Try("give every port and tunnel between the hosts the same MTU as their interfaces")
	}
	cause := report.Network
	if rendezvous.PeerGone(err) || errors.Is(err, wire.ErrMalformed) {
		cause = report.Peer
	}
	return report.Errorf(cause, "connect", "the handshake failed: %w", err).On(k.dev.Name).With(k.peer(w)).
		Try("look at the peer's log")
}
