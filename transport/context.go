package transport

import (
	"sync"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/rendezvous"
	"weft/transport/streams"
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
	core  *Core
	opts  ContextOptions
	owned struct {
		sync.Mutex
		listeners  map[*Listener]struct{} // protected, as all below
		connectors map[uint64]*connector
		comms      map[*Comm]struct{}
		closed     bool
	}
}

// NewContext makes a context.
func (c *Core) NewContext(o ContextOptions) *Context {
	if o.Log == nil {
		o.Log = c.cfg.Log
	}
	if o.Hints == nil {
		o.Hints = func() rdma.Attr { return rdma.Attr{} }
	}
	if o.NetEvents == nil || c.cfg.Knobs.Int(knob.NetEvents) == 0 {
		o.NetEvents = func() uintptr { return 0 }
	}
	x := &Context{core: c, opts: o}
	x.owned.listeners = map[*Listener]struct{}{}
	x.owned.connectors = map[uint64]*connector{}
	x.owned.comms = map[*Comm]struct{}{}
	c.contexts.Lock()
	c.contexts.all[x] = struct{}{}
	x.owned.closed = c.contexts.closed
	c.contexts.Unlock()
	x.hears()
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
		c.fp.Hear()
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

// overTCP is the carrier of a finished handshake's connections; stash is what the
// listening side said of it, for the connecting side.
func (x *Context) overTCP(dev *device.Device, kind fastpath.Kind, peer string, conns []*rendezvous.Conn, stash uint32) *streams.Carrier {
	return x.core.streams.Carrier(streams.Options{Log: x.opts.Log, Kind: kind, Device: &dev.Device, Peer: peer, Cookie: comms.Reserve(), NetEvents: x.opts.NetEvents(), Conns: conns, Stash: stash})
}

// Close is finalize: it ends connects that nobody polls any more, listens and
// comms that the host never closed (NCCL forgets them when it aborts).
func (x *Context) Close() error {
	x.core.contexts.Lock()
	delete(x.core.contexts.all, x)
	x.core.contexts.Unlock()
	if x.core.finalized() {
		x.core.pool.Empty()
	}

	x.owned.Lock()
	x.owned.closed = true
	var connectors []*connector
	var ls []*Listener
	var cs []*Comm
	for _, c := range x.owned.connectors {
		connectors = append(connectors, c)
	}
	for l := range x.owned.listeners {
		ls = append(ls, l)
	}
	for c := range x.owned.comms {
		cs = append(cs, c)
	}
	x.owned.Unlock()

	if n := len(connectors) + len(ls) + len(cs); n > 0 {
		x.opts.Log.Info(report.Net, "finalize: closing %d listens, %d connects and %d comms that were left open", len(ls), len(connectors), len(cs))
	}
	for _, c := range connectors {
		c.abandon()
	}
	for _, l := range ls {
		l.Close()
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
