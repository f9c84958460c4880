package session

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/route"
	"weft/transport/task"
	"weft/transport/wire"
)

// Session is one control connection of a process pair, as one of the two sees
// it. All comms that the connecting process has with the other share it.
type Session struct {
	Conn       *rendezvous.Conn
	ID         uint64
	Key        [wire.KeySize]byte // by which a later version reopens it
	Peer       wire.Hello
	Name       string          // of the peer, for messages
	Devices    []wire.Device   // the peer's inventory, for the side that chooses ports
	Active     bool            // this process opened it
	Ports      route.Known     // what is known of pairs of both processes' ports
	Life       context.Context // ends with it
	Background Background

	all   *All
	cut   context.CancelCauseFunc // ends Life
	heard chan struct{}           // closed when all has been read that the peer said

	mu      sync.Mutex
	members map[uint64]*Member // by comm id; protected by mu, as all below
	users   int                // active side: comms and handshakes that need it
	idle    *time.Timer        // while it has no comm: ends it
	ended   error              // why it is over, nil while it stands
	parting bool               // bye was said, by either side
	aborted time.Time          // when the peer's host last gave a comm up
	said    word               // why the peer last did so on a failure

	out struct {
		sync.Mutex
		queue   []byte // protected, as all below
		spare   []byte
		writing bool
		gathers bool // the one that is to write lets others join first: whoever is in a hurry writes in its place
		message uint64
	}
}

// Background is what the comms of a session get in the background, piece by piece.
type Background struct {
	Led, Followed task.Errands // further lanes, on the connecting side and on the listening one
	Loops         task.Errands // queue pairs for flushes
}

// word is why the peer last gave a connection up.
type word struct {
	reason string
	at     time.Time
}

// New makes a session; Start has it serve the peer. Peer is what the peer says of itself.
func (ss *All) New(c *rendezvous.Conn, peer *wire.Hello, devices []wire.Device, active bool) *Session {
	s := &Session{all: ss, Conn: c, Peer: *peer, Name: rendezvous.PeerName(peer, c), Devices: devices, Active: active,
		members: map[uint64]*Member{}, heard: make(chan struct{})}
	s.Life, s.cut = context.WithCancelCause(context.Background())
	if peer.Build != ss.cfg.Build && s.Says() {
		ss.cfg.Log.Info(report.Net, "%s runs weft %s, this host %s; both speak wire version %d", s.Name, rendezvous.Build(peer), ss.cfg.Build, wire.Version)
	}
	return s
}

// Says reports whether the peer may cause one more line in the log.
func (s *Session) Says() bool {
	return s.Active || s.all.cfg.Noise.Allows(s.Conn.Remote().Addr(), s.all.cfg.Log)
}

// DrawKey returns the key by which a later version reopens the session.
func (s *Session) DrawKey() [wire.KeySize]byte {
	rand.Read(s.Key[:])
	return s.Key
}

// Join adds a comm; nil when the session is over.
func (s *Session) Join(id uint64) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.members[id] != nil {
		return nil
	}
	m := &Member{Session: s, ID: id, Over: make(chan struct{})}
	s.members[id] = m
	return m
}

// Has reports whether a comm still belongs to the session.
func (s *Session) Has(id uint64) (known bool) {
	s.withMember(id, func(*Member) { known = true })
	return known
}

// Over is why the session has ended; nil: it stands.
func (s *Session) Over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *Session) withMember(id uint64, do func(*Member)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[id]; m != nil {
		do(m)
	}
}

// Comm is the comm of an id, if it is built; nil: none.
func (s *Session) Comm(id uint64) Comm {
	c, _ := s.Known(id)
	return c
}

// Known is the comm of an id; nil: it is not built yet. Open: its other end is.
func (s *Session) Known(id uint64) (c Comm, open bool) {
	s.withMember(id, func(m *Member) { c, open = m.comm, m.failed == nil && !m.closed })
	return c, open
}
