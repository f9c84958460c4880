package transport

import (
	"crypto/rand"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/liveness"
	"weft/transport/pool"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/streams"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// poolAge is as long as a session outlives its last comm.
const poolAge = session.LingerIdle

// Config is what a core needs from its process.
type Config struct {
	Knobs      *knob.Values
	Log        report.Logger
	Code       func(err error, table int) int32 // the only place where an error becomes a result code; table 0: its version is not known
	Devices    []*device.Device                 // what NCCL sees, in its order, from device.Found
	Interfaces []*tcp.Device                    // what rendezvous and control connections run on
	Verbs      *verbs.Provider                  // behind the devices that have Verbs; nil without
	NoVerbs    string                           // why Verbs is nil, for the peers' messages
	Build      string                           // this build, for the peer's error messages
}

// Core is the transport of one process: one process id, one set of rendezvous
// sockets, one control connection per peer.
type Core struct {
	cfg     Config
	timeout time.Duration // T of the design
	process wire.ProcessID
	host    string
	pid     uint32

	devices  *device.List
	net      *rendezvous.Network
	sockets  *rendezvous.Sockets
	sessions *session.All
	reaper   *tcp.Reaper
	noise    *rendezvous.Noise
	watch    *liveness.Watcher
	streams  *streams.Shared
	pool     *pool.Pool[*lanes.Kit]
	lanes    *lanes.Shared
	deaf     func()      // ends the subscriptions to events
	outgoing *task.Slots // connects
	incoming *task.Slots // first streams of comms, from hello to lanes

	manyLanes sync.Once     // a number of lanes that is cut is said once
	nextComm  atomic.Uint64 // comm ids on the wire, for comms that this process connects
	connSalt  uint32        // upper half of every connector state written by this core
	nextState atomic.Uint32

	inbound struct {
		sync.Mutex
		byNonce map[wire.Nonce]*inbound // protected; comms that the passive side is setting up, by its own nonces
	}
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
	c := &Core{cfg: cfg, timeout: cfg.Knobs.Seconds(knob.Timeout), host: hostName(), pid: uint32(os.Getpid())}
	rand.Read(c.process[:])
	c.connSalt = uint32(wire.Random64()) | 1 // never 0: a state of 0 means "none yet"
	c.nextComm.Store(wire.Random64() >> 16)
	c.reaper = tcp.NewReaper(c.timeout, cfg.Log)
	c.devices = device.NewList(cfg.Devices, cfg.Knobs, cfg.Log)
	c.noise = rendezvous.NewNoise(cfg.Log)
	c.net = rendezvous.NewNetwork(cfg.Knobs, cfg.Log, cfg.Interfaces)
	c.sockets = rendezvous.NewSockets(c.net, c.noise)
	c.streams = &streams.Shared{Knobs: cfg.Knobs, Log: cfg.Log, Net: c.net, Flows: tcp.NewFlows(c.timeout, cfg.Log), Reaper: c.reaper}
	c.pool = pool.New[*lanes.Kit](pool.Config{Log: cfg.Log, Most: int(cfg.Knobs.Int(knob.Pool)), Age: poolAge, Lingers: c.reaper.Lingers,
		Vain: func() bool { return c.watch.Idle() || c.finalized() }})
	c.watch = liveness.New(liveness.Config{Log: cfg.Log, Timeout: c.timeout, Heard: c.pool.Heard, Vacant: c.pool.Empty,
		ReceiverTC: func(tc uint8) uint8 { return cfg.Verbs.ReceiverTC(tc) }})
	c.lanes = &lanes.Shared{Knobs: cfg.Knobs, Log: cfg.Log, Timeout: c.timeout, Watch: c.watch, Pool: c.pool, Growing: task.NewSlots(), Lingers: c.reaper.Lingers,
		Busy: func() bool { return c.outgoing.Busy()+c.incoming.Busy() > 0 }}
	c.sessions = session.NewAll(c.ofSessions())
	c.outgoing, c.incoming = task.NewSlots(), task.NewSlots()
	c.inbound.byNonce = map[wire.Nonce]*inbound{}
	c.contexts.all = map[*Context]struct{}{}
	installUpcalls(c)
	c.deaf = c.watch.Hear(cfg.Verbs)
	if cfg.Verbs != nil {
		cfg.Verbs.Spare(c.pool.Yield)
	}
	return c, nil
}

// ofSessions is what its control connections have of c.
func (c *Core) ofSessions() session.Config {
	return session.Config{
		Log: c.cfg.Log, Timeout: c.timeout, Build: c.cfg.Build, Noise: c.noise, Sockets: c.sockets,
		Lingers: c.reaper.Lingers,
		Coming:  c.settingUp,
		Attach:  c.attach,
		Serve: map[wire.Kind]func(*session.Session, []byte) error{
			wire.KindProbeOffer: c.watch.Serve, wire.KindProbeAnswer: c.watch.Serve, wire.KindProbeState: c.watch.Serve,
			wire.KindFurther: c.lanes.Serve, wire.KindFurtherAnswer: c.lanes.Serve, wire.KindJoin: c.lanes.Serve, wire.KindJoined: c.lanes.Serve,
		},
		Forget: func(s *session.Session) { c.pool.Forget(func(k *lanes.Kit) bool { return k.Session() == s }) },
		Ended:  sessionEnded,
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
	for _, x := range all {
		x.Close()
	}
	c.sessions.CloseAll()
	c.sockets.CloseAll()
	c.deaf()
}

// finalized reports whether the host has no context.
func (c *Core) finalized() bool {
	c.contexts.Lock()
	defer c.contexts.Unlock()
	return len(c.contexts.all) == 0
}

// Devices are those of the host in NCCL's order, fused ones at the end.
func (c *Core) Devices() []*device.Device { return c.devices.All() }

// hello is what this process says of itself on a connection of dev.
func (c *Core) hello(dev *device.Device) wire.Hello {
	return wire.Hello{Speaks: wire.Version, Device: dev.Indices()[0], PID: c.pid,
		Process: c.process, Host: c.host, Build: c.cfg.Build, Name: dev.Name}
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown-host"
	}
	return name
}
