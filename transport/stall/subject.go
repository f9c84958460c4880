package stall

import (
	"fmt"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/wire"
)

// Subject is a comm that is looked at.
type Subject interface {
	// Sends tells its direction.
	Sends() bool
	// Look is how far it has come.
	Look() fastpath.Look
	// Progress grows with what its carrier moves within a message.
	Progress() uint64
	// Sent is what the kernel has sent for it, in packets, and of these again; zeros: it
	// does not tell.
	Sent() (packets, again uint64)
	// Standing is the session of a comm that neither side has closed or given up;
	// nil: there is none.
	Standing() *session.Session
	// Broken reports whether it has failed, and its host has not closed it yet.
	Broken() bool
	// Cabled reports whether cards move its bytes, and not the kernel.
	Cabled() bool
	// OutOfUse says why its own device cannot be used now; empty: it can.
	OutOfUse() string
	// Member is the comm to its session.
	Member() *session.Member
	// Devices are its own and the peer's.
	Devices() (own, peer string)
	// Log speaks to the host that has it.
	Log() report.Logger
}

// path is what comms have in common that wait for the same: process, direction and
// devices.
type path struct {
	process   wire.ProcessID
	sends     bool
	own, peer string // devices
}

func pathOf(c Subject, s *session.Session) path {
	own, peer := c.Devices()
	return path{s.Peer.Process, c.Sends(), own, peer}
}

// name is how lines call a process.
func name(host string, pid uint32) string { return fmt.Sprintf("%s:%d", host, pid) }

func nameOf(s *session.Session) string { return name(s.Peer.Host, s.Peer.PID) }

// between is how lines call what leads from one process to another.
func between(from, to string) string { return "the path from " + from + " to " + to }
