package transport

import (
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/node"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/wire"
)

// env is what listens and connects have of their process: one process id, one set
// of rendezvous sockets, one control connection per peer.
type env struct {
	cfg     Config
	timeout time.Duration // T of the design
	process wire.ProcessID
	host    string
	pid     uint32

	devices  *device.List
	net      *rendezvous.Network
	sockets  *rendezvous.Sockets
	noise    *rendezvous.Noise
	sessions *session.All
	ways     []carrier.Way // how a comm may be carried, the best first
	plain    carrier.Plain // the last of them, which always serves

	outgoing  *task.Slots   // connects
	incoming  *task.Slots   // first streams of comms, from hello to lanes
	nextComm  atomic.Uint64 // comm ids on the wire, for comms that this process connects
	connSalt  uint32        // upper half of every connector state written by this core
	nextState atomic.Uint32

	inbound struct {
		sync.Mutex
		byNonce map[wire.Nonce]setup // protected; by the listening side's own nonces
	}
}

// setup is a comm that the listening side is setting up.
type setup interface {
	from() wire.ProcessID
	attach(m *session.Member, a *wire.Attach) error
	abort(why error)
	unproven() (since time.Time, is bool) // neither frame 3 nor attach has come: it may be a replay
}

func (e *env) init(cfg Config) {
	e.cfg, e.host, e.pid = cfg, node.Name(), uint32(os.Getpid())
	rand.Read(e.process[:])
	e.connSalt = uint32(wire.Random64()) | 1 // never 0: a state of 0 means "none yet"
	e.nextComm.Store(wire.Random64() >> 16)
	e.outgoing, e.incoming = task.NewSlots(), task.NewSlots()
	e.inbound.byNonce = map[wire.Nonce]setup{}
}

// hello is what this process says of itself on a connection of dev.
func (e *env) hello(dev *device.Device) wire.Hello {
	return wire.Hello{Header: wire.Header{Flags: wire.FlagWaits}, Speaks: wire.Version, Device: dev.Indices()[0], PID: e.pid,
		Process: e.process, Host: e.host, Build: e.cfg.Build, Name: dev.Name}
}

// setupOf finds the comm that is being set up behind a nonce; nil: none.
func (e *env) setupOf(n wire.Nonce) setup {
	e.inbound.Lock()
	defer e.inbound.Unlock()
	return e.inbound.byNonce[n]
}

// attach gives a new member to the comm that is being set up for it.
func (e *env) attach(m *session.Member, a *wire.Attach) error {
	in := e.setupOf(a.Nonce)
	if in == nil {
		return errors.New("the listen knows no such comm: it was given up or closed")
	}
	return in.attach(m, a)
}

// settingUp reports whether a comm of the process is on its way.
func (e *env) settingUp(process *wire.ProcessID) bool {
	e.inbound.Lock()
	defer e.inbound.Unlock()
	for _, in := range e.inbound.byNonce {
		if in.from() == *process {
			return true
		}
	}
	return false
}
