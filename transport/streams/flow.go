package streams

import (
	"strings"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/tcp"
)

// What tcp.Flows asks and tells of a comm's streams.

// Over reports whether the comm has ended.
func (t *Carrier) Over() bool { return t.comm.Over() }

// Moved is what it has done so far.
func (t *Carrier) Moved() fastpath.Stats { return t.fp.Snapshot() }

// Each calls look for every stream until the comm is closed.
func (t *Carrier) Each(look func(stream, fd int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, fd := range t.fds {
		look(i, fd)
	}
}

// NoPath ends the comm because a stream's packets do not arrive.
func (t *Carrier) NoPath(stream int, now *tcp.Flow, limit time.Duration) {
	c := t.comm
	path, header := t.paths[t.pathOf[stream]], 28 // of IPv4 and ICMP
	if strings.Contains(path, ":") {
		header = 48
	}
	c.Fail(report.Errorf(report.Network, c.Verb(), "nothing of what stream %d sends from %s was acknowledged for %v, after %d repetitions, while the peer's window is open",
		stream, path, limit, now.Repeats).On(t.opts.Device.Name).With(t.opts.Peer).
		Try("small packets pass, for the control connection lives: a port or tunnel on this path has a smaller MTU than %d (try ping -M do -s %d there), or the control connection takes another path and this one is cut",
			now.MTU, now.MTU-header))
}
