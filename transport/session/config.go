package session

import (
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

// Config is what the sessions of a process have of it.
type Config struct {
	Log     report.Logger
	Timeout time.Duration // T of the design
	Build   string        // of this process
	Noise   *rendezvous.Noise
	Sockets *rendezvous.Sockets

	// Lingers counts the senders for which a process that exits waits a moment.
	Lingers func(n int)
	// Coming reports whether a comm of a process is being set up here.
	Coming func(process *wire.ProcessID) bool
	// Attach gives a new member to the comm that the message names, or says why there is none.
	Attach func(m *Member, a *wire.Attach) error
	// Serve acts on messages of further kinds. It waits for nothing.
	Serve map[wire.Kind]func(s *Session, frame []byte) error
	// Forget drops what is kept for a session that has ended.
	Forget func(s *Session)
	// Ended tells the comms that a session leaves why it has ended.
	Ended func(left []Comm, why *report.Error)
}

// Comm is what a session tells a comm that it carries.
type Comm interface {
	// PeerClosed says that the peer has closed its side in good order.
	PeerClosed()
	// PeerRefused says that the peer refuses a group.
	PeerRefused(s *Session, m *wire.Refused)
	// PeerGaveUp says that the peer has ended its side: on an error, or because its host aborts.
	PeerGaveUp(err *report.Error, aborted bool)
}
