package transport

import (
	"strings"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/tcp"
)

// flow is a comm over TCP as tcp.Flows looks after it.
type flow struct {
	carrier *tcpCarrier
	comm    *Comm
}

// Over reports whether the comm has ended.
func (f *flow) Over() bool { return f.comm.over() }

// Moved is what it has done so far.
func (f *flow) Moved() fastpath.Stats { return f.comm.fp.Snapshot() }

// Each calls look for every stream.
func (f *flow) Each(look func(stream, fd int)) {
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	for i, fd := range f.carrier.fds {
		look(i, fd)
	}
}

// NoPath ends the comm because a stream's packets do not arrive.
func (f *flow) NoPath(stream int, now *tcp.Flow, limit time.Duration) {
	t, c := f.carrier, f.comm
	way, header := t.ways[t.wayOf[stream]], 28 // of IPv4 and ICMP
	if strings.Contains(way, ":") {
		header = 48
	}
	c.fail(report.Errorf(report.Network, c.verb(), "nothing of what stream %d sends from %s was acknowledged for %v, after %d repetitions, while the peer's window is open",
		stream, way, limit, now.Repeats).On(c.dev.Name).With(c.peer).
		Try("small packets pass, for the control connection lives: a port or tunnel on this way has a smaller MTU than %d (try ping -M do -s %d there), or the control connection goes another way and this one is cut",
			now.MTU, now.MTU-header))
}
