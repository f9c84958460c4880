package transport

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"weft/transport/rdma"
)

const (
	noiseEvery   = 10 * time.Second // one line per source in this time
	noiseSources = 256              // sources remembered; beyond them all share one line
)

// noise reports connections that were no weft peers: one line per source, then
// at most one every noiseEvery with the count. A scanner cannot fill the log.
type noise struct {
	log     rdma.Logger
	sources struct {
		sync.Mutex
		seen map[netip.Addr]*source // protected
	}
}

type source struct {
	quiet time.Time // no line before
	count int       // closed since the last line
}

func newNoise(log rdma.Logger) *noise {
	n := &noise{log: log}
	n.sources.seen = map[netip.Addr]*source{}
	return n
}

// dropped says that a connection from somebody was closed, and why.
func (n *noise) dropped(from netip.Addr, listener string, why error) {
	if line := n.line(from, listener, why, time.Now()); line != "" {
		n.log.Info(rdma.Net, "%s", line)
	}
}

func (n *noise) line(from netip.Addr, listener string, why error, now time.Time) string {
	n.sources.Lock()
	defer n.sources.Unlock()
	name := from.String()
	s := n.sources.seen[from]
	if s == nil {
		if len(n.sources.seen) >= noiseSources {
			n.forget(now)
		}
		if len(n.sources.seen) >= noiseSources {
			from, name = netip.Addr{}, "many addresses"
			s = n.sources.seen[from]
		}
		if s == nil {
			s = &source{}
			n.sources.seen[from] = s
		}
	}
	s.count++
	if now.Before(s.quiet) {
		return ""
	}
	count := s.count
	s.count, s.quiet = 0, now.Add(noiseEvery)
	if count > 1 {
		return fmt.Sprintf("listener %s closed %d connections from %s, the last because: %v", listener, count, name, why)
	}
	return fmt.Sprintf("listener %s closed a connection from %s: %v; no weft peer, or one with a stale handle", listener, name, why)
}

// forget drops the sources that have been silent for a while.
func (n *noise) forget(now time.Time) {
	for a, s := range n.sources.seen {
		if now.After(s.quiet) {
			delete(n.sources.seen, a)
		}
	}
}
