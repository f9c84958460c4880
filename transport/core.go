package transport

import (
	"sync"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/liveness"
	"weft/transport/pool"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/stall"
	"weft/transport/streams"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/verbs"
	"weft/transport/verbs/event"
	"weft/transport/wire"
)

// poolAge is as long as a session outlives its last comm.
const poolAge = session.LingerIdle

// Core is the transport of one process.
type Core struct {
	env
	watch *liveness.Watcher
	pool  *pool.Pool[*lanes.Kit]
	lanes *lanes.Shared
	stall *stall.Monitor
	serve kinds
	deaf  func() // ends the subscription to events

	contexts struct {
		sync.Mutex
		all    map[*Context]struct{} // protected
		closed bool                  // protected
	}
}

// Open starts a core. It opens no socket before the first listen or connect.
func Open(cfg Config) (*Core, error) {
	if len(cfg.Devices) == 0 || len(cfg.Interfaces) == 0 {
		return nil, report.Errorf(report.Host, "init", "no usable network device").
			Try("see NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY")
	}
	if cfg.Knobs == nil {
		cfg.Knobs = knob.Defaults()
	}
	if cfg.Log == nil {
		cfg.Log = report.Discard{}
	}
	if cfg.afterFunc == nil {
		cfg.afterFunc = time.AfterFunc
	}
	c := &Core{}
	c.init(cfg)
	c.timeout = cfg.Knobs.Seconds(knob.Timeout)
	c.contexts.all = map[*Context]struct{}{}
	c.devices = device.NewList(cfg.Devices, cfg.Knobs, cfg.Log)
	c.noise = rendezvous.NewNoise(cfg.Log)
	c.net = rendezvous.NewNetwork(cfg.Knobs, cfg.Log, cfg.Interfaces)
	c.sockets = rendezvous.NewSockets(c.net, c.noise)
	reaper := tcp.NewReaper(c.timeout, cfg.Log)
	c.pool = pool.New[*lanes.Kit](pool.Config{Log: cfg.Log, Most: int(cfg.Knobs.Int(knob.Pool)), Age: poolAge, AfterFunc: cfg.afterFunc,
		Lingers: reaper.Lingers, Vain: func() bool { return c.watch.Idle() || c.finalized() }})
	c.watch = liveness.New(liveness.Config{Log: cfg.Log, Timeout: c.timeout, Vacant: c.pool.Empty,
		ReceiverTC: func(tc uint8) uint8 { return cfg.Verbs.ReceiverTC(tc) }})
	c.lanes = &lanes.Shared{Knobs: cfg.Knobs, Log: cfg.Log, Timeout: c.timeout, Watch: c.watch, Pool: c.pool, Growing: task.NewSlots(), Lingers: reaper.Lingers,
		Busy: func() bool { return c.outgoing.Busy()+c.incoming.Busy() > 0 }}
	c.stall = stall.New(stall.Config{Log: cfg.Log, Host: c.host, PID: c.pid, Least: cfg.Knobs.Seconds(knob.StallSeconds), Comms: c.openComms})
	c.serve = serves(c.watch, c.lanes, c.stall)
	c.sessions = session.NewAll(c.ofSessions(reaper.Lingers))
	c.plain = &streams.Shared{Knobs: cfg.Knobs, Log: cfg.Log, Net: c.net, Flows: tcp.NewFlows(c.timeout, cfg.Log), Reaper: reaper,
		Small: tcp.NewCoalescer(cfg.Log, reaper.Lingers)}
	c.ways = ways(&c.env, c.lanes, c.plain)
	comms.Install(&comms.Host{Log: cfg.Log, Code: cfg.Code})
	if cfg.Verbs != nil {
		c.hear(cfg.Verbs)
		cfg.Verbs.Spare(c.pool.Yield)
	}
	if cfg.Stall {
		c.stall.Start()
	}
	return c, nil
}

// hear has events of the cards end what they concern. Events of ports are also for
// those who choose paths.
func (c *Core) hear(p *verbs.Provider) {
	c.deaf = p.Subscribe(func(e event.Event) {
		c.pool.Heard(&e)
		if e.Err != nil {
			c.watch.Fatal(e)
		}
	})
}

// ofSessions is what its control connections have of c.
func (c *Core) ofSessions(lingers func(n int)) session.Config {
	return session.Config{
		Log: c.cfg.Log, Timeout: c.timeout, Build: c.cfg.Build, Noise: c.noise, Sockets: c.sockets,
		Lingers: lingers,
		Coming:  c.settingUp,
		Attach:  c.attach,
		Serve:   c.serve,
		Forget:  func(s *session.Session) { c.pool.Forget(func(k *lanes.Kit) bool { return k.Session() == s }) },
		Ended:   comms.SessionEnded,
	}
}

// kinds is who takes messages on control connections, by their kind.
type kinds map[wire.Kind]func(*session.Session, []byte) error

// serves is for all but the messages about sessions, which are the sessions' own.
func serves(w *liveness.Watcher, l *lanes.Shared, st *stall.Monitor) kinds {
	return kinds{
		wire.KindProbeOffer: w.Serve, wire.KindProbeAnswer: w.Serve, wire.KindProbeState: w.Serve,
		wire.KindFurther: l.Serve, wire.KindFurtherAnswer: l.Serve, wire.KindJoin: l.Serve, wire.KindJoined: l.Serve,
		wire.KindWaitAsk: st.Serve, wire.KindWaitReply: st.Serve,
	}
}

// Close ends everything that this core still has. The library never calls it:
// a core lives as long as its process.
func (c *Core) Close() {
	c.contexts.Lock()
	c.contexts.closed = true
	var all []*Context
	for x := range c.contexts.all {
		all = append(all, x)
	}
	c.contexts.Unlock()
	c.stall.Stop()
	for _, x := range all {
		x.Close()
	}
	c.sessions.CloseAll()
	c.sockets.CloseAll()
	if c.deaf != nil {
		c.deaf()
	}
}

// NewContext makes a context.
func (c *Core) NewContext(o ContextOptions) *Context {
	x := newContext(&c.env, o)
	x.gone = func() {
		c.contexts.Lock()
		delete(c.contexts.all, x)
		c.contexts.Unlock()
		if c.finalized() {
			c.pool.Empty()
		}
	}
	c.contexts.Lock()
	c.contexts.all[x] = struct{}{}
	x.owned.closed = c.contexts.closed
	c.contexts.Unlock()
	x.hears()
	return x
}

// finalized reports whether the host has no context.
func (c *Core) finalized() bool {
	c.contexts.Lock()
	defer c.contexts.Unlock()
	return len(c.contexts.all) == 0
}

// openComms are the comms that are open.
func (c *Core) openComms() (all []stall.Subject) {
	c.contexts.Lock()
	defer c.contexts.Unlock()
	for x := range c.contexts.all {
		x.owned.Lock()
		for comm := range x.owned.comms {
			all = append(all, comm)
		}
		x.owned.Unlock()
	}
	return all
}

// Fuse makes one device of several, by their indices, and returns it.
func (c *Core) Fuse(members []int) (*device.Device, error) { return c.devices.Fuse(members) }

// Unfuse forgets the fused devices, unless one of them is in use.
func (c *Core) Unfuse() bool { return c.devices.Unfuse(c.asked) }

// asked reports whether a listen or a connect of any context is on d.
func (c *Core) asked(d *device.Device) bool {
	c.contexts.Lock()
	defer c.contexts.Unlock()
	for x := range c.contexts.all {
		if x.asks(d) {
			return true
		}
	}
	return false
}
