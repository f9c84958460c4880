package transport

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/route"
	"weft/transport/task"
	"weft/transport/wire"
)

const (
	lingerIdle = 30 * time.Second // a control connection outlives its last comm by this
	outLimit   = 1 << 20          // bytes waiting for a peer that does not read
)

// session is one control connection of a process pair, as one of the two sees
// it. All comms that the connecting process has with the other share it.
type session struct {
	core    *Core
	conn    *rendezvous.Conn
	id      uint64
	key     [wire.KeySize]byte // by which a later version reopens it
	peer    wire.Hello
	name    string        // of the peer, for messages
	devices []wire.Device // the peer's inventory, for the side that chooses ports
	active  bool          // this process opened it
	ports   route.Known   // what is known of pairs of both processes' ports
	life    context.Context
	cut     context.CancelCauseFunc // ends life
	heard   chan struct{}           // closed when all has been read that the peer said

	mu      sync.Mutex
	members map[uint64]*member // by comm id; protected by mu, as all below
	users   int                // active side: comms and handshakes that need it
	idle    *time.Timer        // while it has no comm: ends it
	ended   error              // why it is over, nil while it stands
	parting bool               // bye was said, by either side
	aborted time.Time          // when the peer's host last gave a comm up
	said    word               // why the peer last did so on a failure

	growth struct {
		led, followed task.Errands // comms that get further lanes, on the connecting side and on the listening one
		loops         task.Errands // comms that get queue pairs for flushes
	}

	out struct {
		sync.Mutex
		queue   []byte // protected, as all below
		spare   []byte
		writing bool
		message uint64
	}
}

// member is one comm of a session.
type member struct {
	session *session
	id      uint64
	comm    *Comm // nil until it is built; protected by session.mu, as all below
	closed  bool  // the peer closed it in good order
	failed  error // it failed before it was built
	aborted bool  // because the peer's host gave it up
	gone    bool
	over    chan struct{} // closed when the peer has closed it or given it up, or the session has ended
	once    sync.Once
}

// end says that the peer needs nothing of the comm any more.
func (m *member) end() { m.once.Do(func() { close(m.over) }) }

func (m *member) header() wire.Header { return wire.Header{Comm: m.id} }

func newSession(c *Core, k *rendezvous.Conn, peer *wire.Hello, devices []wire.Device, active bool) *session {
	s := &session{core: c, conn: k, peer: *peer, name: rendezvous.PeerName(peer, k), devices: devices, active: active,
		members: map[uint64]*member{}, heard: make(chan struct{})}
	s.life, s.cut = context.WithCancelCause(context.Background())
	if peer.Build != c.cfg.Build && s.says() {
		c.cfg.Log.Info(report.Net, "%s runs weft %s, this host %s; both speak wire version %d", s.name, rendezvous.Build(peer), c.cfg.Build, wire.Version)
	}
	return s
}

// says reports whether the peer may cause one more line in the log.
func (s *session) says() bool {
	return s.active || s.core.noise.Allows(s.conn.Remote().Addr(), s.core.cfg.Log)
}

func (s *session) drawKey() [wire.KeySize]byte {
	rand.Read(s.key[:])
	return s.key
}

// join adds a comm; nil when the session is over.
func (s *session) join(id uint64) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.members[id] != nil {
		return nil
	}
	m := &member{session: s, id: id, over: make(chan struct{})}
	s.members[id] = m
	return m
}

// has reports whether a comm is the session's still.
func (s *session) has(id uint64) (known bool) {
	s.withMember(id, func(*member) { known = true })
	return known
}

// over is why the session has ended; nil: it stands.
func (s *session) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// closedWell reports whether the peer has closed the comm in good order.
func (m *member) closedWell() bool {
	m.session.mu.Lock()
	defer m.session.mu.Unlock()
	return m.closed && m.failed == nil
}

// leave removes a comm.
func (s *session) leave(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.gone {
		return
	}
	m.gone = true
	delete(s.members, m.id)
	if !s.active && len(s.members) == 0 && s.idle == nil && s.ended == nil {
		s.idle = time.AfterFunc(lingerIdle+s.core.timeout, s.unused)
		s.core.sockets.Unused(s.conn)
	}
}

// part ends what a closed comm has of its session; m may be nil.
func (m *member) part() {
	if m == nil {
		return
	}
	m.session.leave(m)
	if m.session.active {
		m.session.release()
	}
}

// hold keeps the session from ending for want of comms; false when it is over.
func (s *session) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.parting {
		return false
	}
	s.users++
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	return true
}

// release undoes hold. The connecting side closes an unused session after a while.
func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.users == 0 && s.active && s.ended == nil {
		s.idle = time.AfterFunc(lingerIdle, s.bye)
	}
}

// bye says so if still nobody needs the session.
func (s *session) bye() {
	defer task.Rescue(s.core.cfg.Log, "control connection", task.Nobody)
	s.mu.Lock()
	if s.users > 0 || s.ended != nil {
		s.mu.Unlock()
		return
	}
	s.parting = true
	s.mu.Unlock()
	s.core.sessions.forget(s)
	s.tell(&wire.Bye{})
	s.conn.CloseWrite()
}

// frame is a message that a session can send.
type frame interface{ Append([]byte) []byte }

// tell sends m and returns when it is with the kernel, or with a goroutine that
// is sending already. A session that is over swallows it.
func (s *session) tell(m frame) {
	if s.enqueue(m) {
		s.flush()
	}
}

// tellLater sends m without waiting for the socket: for the host's threads. What
// the kernel takes is with it when the call returns: the host may end the process
// at once, and without its exit handlers, when it hears of an error.
func (s *session) tellLater(m frame) {
	if s.enqueue(m) && !s.flushNow() {
		go s.flush()
	}
}

// flushNow writes what the socket takes, for who is to flush, and reports whether
// that was all. An error of the socket is flush's to find.
func (s *session) flushNow() bool {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return false
	}
	s.out.Lock()
	defer s.out.Unlock()
	n := 0
	_ = raw.Write(func(fd uintptr) bool { // who is closed takes nothing
		n, err = unix.SendmsgN(int(fd), s.out.queue, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true
	})
	if err == nil && n > 0 {
		s.out.queue = s.out.queue[:copy(s.out.queue, s.out.queue[n:])]
	}
	if len(s.out.queue) > 0 {
		return false
	}
	s.out.writing = false
	s.core.reaper.lingers(-1)
	return true
}

// enqueue appends m, numbered, and reports whether the caller is the one to
// flush. A process that exits before that is done waits for it a moment, so
// that its peer hears why.
func (s *session) enqueue(m frame) bool {
	s.out.Lock()
	defer s.out.Unlock()
	if len(s.out.queue) > outLimit {
		go s.flooded(len(s.out.queue))
		return false
	}
	start := len(s.out.queue)
	s.out.queue = m.Append(s.out.queue)
	s.out.message++
	wire.Stamp(s.out.queue[start:], s.id, s.out.message)
	if s.out.writing {
		return false
	}
	s.out.writing = true
	s.core.reaper.lingers(1)
	return true
}

// flooded ends a session whose peer reads nothing.
func (s *session) flooded(bytes int) {
	defer task.Rescue(s.core.cfg.Log, "control connection", task.Nobody)
	s.end(report.Errorf(report.Peer, "control connection", "%d bytes of messages wait for a peer that reads nothing", bytes).With(s.name).
		Try("see whether its process hangs or is stopped"))
}

func (s *session) flush() {
	defer s.core.reaper.lingers(-1)
	defer task.Rescue(s.core.cfg.Log, "control connection", func(err error) {
		s.end(report.Errorf(report.Internal, "control connection", "%w", err).With(s.name))
	})
	for {
		s.out.Lock()
		b := s.out.queue
		if len(b) == 0 {
			s.out.writing = false
			s.out.Unlock()
			return
		}
		s.out.queue = s.out.spare[:0]
		s.out.Unlock()
		_, err := s.conn.Write(b)
		s.out.Lock()
		s.out.spare = b[:0]
		s.out.Unlock()
		if err != nil {
			if !rendezvous.PeerGone(err) { // else reading comes to the end, past what the peer said before
				s.end(s.broken("sending", err))
			}
			return // writing stays set: nothing is sent any more
		}
	}
}
