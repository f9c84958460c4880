package rendezvous

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"weft/internal/report"
)

const (
	noiseEvery   = 10 * time.Second // one line per source in this time
	noiseBurst   = 20               // lines at once about an address whose processes know a token
	noiseSources = 256              // sources remembered; beyond them all share one
)

// Noise bounds the lines that others can cause here: a line per address of
// strangers, some of processes that know a token, then one every noiseEvery
// with the count of those left out. Nobody can fill the log.
type Noise struct {
	log     report.Logger
	sources struct {
		sync.Mutex
		seen map[sourceKey]*source // protected
	}
}

type sourceKey struct {
	addr   netip.Addr // the zero one stands for many
	proven bool
}

type source struct {
	spare float64 // lines that it may cause now
	at    time.Time
	count int // events since the last line, with those left out
}

// NewNoise returns bounds for the lines of log.
func NewNoise(log report.Logger) *Noise {
	n := &Noise{log: log}
	n.sources.seen = map[sourceKey]*source{}
	return n
}

// dropped says that a connection from somebody was closed, and why.
func (n *Noise) dropped(from netip.Addr, listener string, why error) {
	if line := n.line(from, listener, why, time.Now()); line != "" {
		n.log.Info(report.Net, "%s", line)
	}
}

func (n *Noise) line(from netip.Addr, listener string, why error, now time.Time) string {
	name, count := n.take(sourceKey{addr: from}, now)
	switch count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("listener %s closed a connection from %s: %v; no weft peer, or one with a stale handle", listener, name, why)
	}
	return fmt.Sprintf("listener %s closed %d connections from %s, the last because: %v", listener, count, name, why)
}

// Allows reports whether one more line may be said that a process at an address
// has caused; it says itself how many were not.
func (n *Noise) Allows(from netip.Addr, log report.Logger) bool {
	name, count := n.take(sourceKey{from, true}, time.Now())
	if count > 1 {
		log.Info(report.Net, "%d lines about connections from %s were left out", count-1, name)
	}
	return count > 0
}

// take counts an event and returns how many a line may now speak for, 0 for no
// line, and what to call their source.
func (n *Noise) take(k sourceKey, now time.Time) (name string, count int) {
	n.sources.Lock()
	defer n.sources.Unlock()
	s := n.sources.seen[k]
	if s == nil && len(n.sources.seen) >= noiseSources {
		n.forget(now)
	}
	if s == nil && len(n.sources.seen) >= noiseSources {
		k.addr = netip.Addr{}
		s = n.sources.seen[k]
	}
	if s == nil {
		s = &source{spare: k.burst(), at: now}
		n.sources.seen[k] = s
	}
	s.refill(k, now)
	s.count++
	if s.spare >= 1 {
		s.spare--
		count, s.count = s.count, 0
	}
	if k.addr.IsValid() {
		return k.addr.String(), count
	}
	return "many addresses", count
}

func (k sourceKey) burst() float64 {
	if k.proven {
		return noiseBurst
	}
	return 1
}

func (s *source) refill(k sourceKey, now time.Time) {
	s.spare = min(k.burst(), s.spare+float64(now.Sub(s.at))/float64(noiseEvery))
	s.at = now
}

// forget drops the sources that have been silent for a while.
func (n *Noise) forget(now time.Time) {
	for k, s := range n.sources.seen {
		if s.refill(k, now); s.spare == k.burst() {
			delete(n.sources.seen, k)
		}
	}
}
