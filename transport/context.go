package transport

import (
	"sync"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/comms"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/task"
)

// ContextOptions describe one context of the host: a table version before v11,
// a communicator from v11 on.
type ContextOptions struct {
	Table        int  // its version
	Cuts         bool // the host counts on RDMA to cut a send to its receive
	CommID       uint64
	TrafficClass int32 // -1: none given
	Log          report.Logger
	Hints        func() rdma.Attr // what the host has said last about the work to come; nil: nothing
	NetEvents    func() uintptr   // the host's callback for net events, ncclProfilerCallback_t, or 0; nil: none
}

// Context owns what the host made under it and sweeps what the host forgot.
type Context struct {
	*env
	opts  ContextOptions
	comms comms.Host // what its comms have of it
	gone  func()     // the host has closed it
	owned struct {
		sync.Mutex
		listeners  map[asking]struct{} // protected, as all below
		connectors map[uint64]asking   // by the state in the handle
		comms      map[*comms.Comm]struct{}
		closed     bool
	}
}

// asking is a listen or a connect of the host.
type asking interface {
	on() *device.Device
	abandon()
}

func newContext(e *env, o ContextOptions) *Context {
	if o.Log == nil {
		o.Log = e.cfg.Log
	}
	if o.Hints == nil {
		o.Hints = func() rdma.Attr { return rdma.Attr{} }
	}
	if o.NetEvents == nil || e.cfg.Knobs.Int(knob.NetEvents) == 0 {
		o.NetEvents = func() uintptr { return 0 }
	}
	x := &Context{env: e, opts: o}
	x.comms = comms.Host{Log: o.Log, CommID: o.CommID, Table: o.Table, Code: e.cfg.Code, Noise: e.noise, Owner: x,
		Gone: func(c *comms.Comm) { disown(x, x.owned.comms, c) }}
	x.owned.listeners = map[asking]struct{}{}
	x.owned.connectors = map[uint64]asking{}
	x.owned.comms = map[*comms.Comm]struct{}{}
	return x
}

// profilerAgain is how long a comm leaves the host's profiler alone that wants none of its events.
const profilerAgain = time.Second

// hears has the context's comms ask again, until it is closed.
func (x *Context) hears() {
	x.owned.Lock()
	defer x.owned.Unlock()
	if x.owned.closed || x.opts.NetEvents() == 0 {
		return
	}
	for c := range x.owned.comms {
		c.Hear()
	}
	time.AfterFunc(profilerAgain, func() {
		defer task.Rescue(x.opts.Log, "net events", func(error) {})
		x.hears()
	})
}

// Table is the version of the table that the host uses.
func (x *Context) Table() int { return x.opts.Table }

// Log speaks to the host that made the context.
func (x *Context) Log() report.Logger { return x.opts.Log }

// comm is what a carrier is told of the comm that it is made for.
func (x *Context) comm(dev *device.Device, kind fastpath.Kind, peer string, trafficClass int32) carrier.For {
	return carrier.For{Log: x.opts.Log, Cuts: x.opts.Cuts, Hints: x.opts.Hints, NetEvents: x.opts.NetEvents(),
		Device: dev, Kind: kind, Peer: peer, TrafficClass: trafficClass, Reserve: comms.Reserve}
}

// asks reports whether a listen or a connect is on d.
func (x *Context) asks(d *device.Device) bool {
	x.owned.Lock()
	defer x.owned.Unlock()
	for l := range x.owned.listeners {
		if l.on() == d {
			return true
		}
	}
	for _, k := range x.owned.connectors {
		if k.on() == d {
			return true
		}
	}
	return false
}

// Close is finalize: it ends connects that nobody polls any more, listens and
// comms that the host never closed (NCCL forgets them when it aborts).
func (x *Context) Close() error {
	x.gone()
	x.owned.Lock()
	x.owned.closed = true
	var all []asking
	var cs []*comms.Comm
	for _, k := range x.owned.connectors {
		all = append(all, k)
	}
	for l := range x.owned.listeners {
		all = append(all, l)
	}
	for c := range x.owned.comms {
		cs = append(cs, c)
	}
	listens, connects := len(x.owned.listeners), len(x.owned.connectors)
	x.owned.Unlock()

	if len(all)+len(cs) > 0 {
		x.opts.Log.Info(report.Net, "finalize: closing %d listens, %d connects and %d comms that were left open", listens, connects, len(cs))
	}
	for _, a := range all {
		a.abandon()
	}
	for _, c := range cs {
		c.Close()
	}
	return nil
}

// own records v unless the context is closed.
func own[K comparable, V any](x *Context, m map[K]V, k K, v V) bool {
	x.owned.Lock()
	defer x.owned.Unlock()
	if x.owned.closed {
		return false
	}
	m[k] = v
	return true
}

func disown[K comparable, V any](x *Context, m map[K]V, k K) {
	x.owned.Lock()
	defer x.owned.Unlock()
	delete(m, k)
}

func errFinalized(op string) error {
	return report.Errorf(report.Misuse, op, "the context was finalized")
}
