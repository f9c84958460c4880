package route

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/verbs/qp"
)

// failedFor is how long a pair of ports is left alone that did not work.
const failedFor = 30 * time.Second

// Known is what two processes have found out about their pairs of ports.
//
// Two ports may have a larger MTU than what lies between them: a switch port
// drops what it cannot take, and a queue pair's writes are repeated in vain. A
// proof tells the largest packets that pass, and queue pairs between these ports
// are made for those from then on.
type Known struct {
	mu     sync.Mutex
	failed map[[2]uint16]failure     // protected by mu, as below
	narrow map[[2]uint16]*narrowPair // they carry small packets only
}

// failure is of a pair of ports that did not work.
type failure struct {
	at  time.Time
	why error
}

// narrowPair is a pair of ports between which packets of full size are lost.
type narrowPair struct {
	wide, mtu int  // bytes of payload: what is lost, what passes
	said      bool // that it is used
}

// slowFailure is how long a failure takes that must not be paid for each of a
// host's hundreds of connects: such a pair of ports is left alone for a while.
const slowFailure = 500 * time.Millisecond

// Failed takes in that a pair did not work, which took so long to find out.
func (k *Known) Failed(p *Pair, took time.Duration, why error) {
	if took < slowFailure {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed == nil {
		k.failed = map[[2]uint16]failure{}
	}
	k.failed[p.Key()] = failure{time.Now(), why}
}

// Failure is why a pair is not tried again so soon; nil: it may be tried.
func (k *Known) Failure(p *Pair) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, ok := k.failed[p.Key()]
	if ago := time.Since(f.at); ok && ago < failedFor {
		return fmt.Errorf("it failed %v ago: %w", ago.Round(time.Second), f.why)
	}
	return nil
}

// Narrowed takes in how a proof failed, and reports whether smaller packets pass.
func (k *Known) Narrowed(p *Pair, why error) bool {
	u := (*qp.Unanswered)(nil)
	if !errors.As(why, &u) || u.Passes == 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.narrow[p.Key()]
	if was == nil {
		if k.narrow == nil {
			k.narrow = map[[2]uint16]*narrowPair{}
		}
		was = &narrowPair{wide: u.MTU, mtu: u.Passes}
		k.narrow[p.Key()] = was
	}
	was.mtu = min(was.mtu, u.Passes)
	return true
}

// Limit tells pairs of ports what is known of their paths.
func (k *Known) Limit(pairs []Pair) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range pairs {
		if n := k.narrow[pairs[i].Key()]; n != nil {
			pairs[i].MTU = n.mtu
		}
	}
}

// SayNarrow says once of each pair that its packets are smaller than they could be.
func (k *Known) SayNarrow(pairs []Pair, dev, peer string, log report.Logger) {
	for i := range pairs {
		p := &pairs[i]
		k.mu.Lock()
		n := k.narrow[p.Key()]
		say := n != nil && !n.said && p.MTU > 0
		if say {
			n.said = true
		}
		k.mu.Unlock()
		if say {
			log.Warn("%s -> %s: RDMA packets of MTU %d are lost between %s (%v) and %v, those of %d pass and are used: transfers are slower than they could be; a switch port or tunnel between takes less than the ports' MTU and its headers: raise it there, or lower the MTU of the interfaces on both hosts [WEFT-060 WEFT-165 WEFT-170]",
				dev, peer, n.wide, p.Local.Name, p.GID.Addr.Unmap(), p.PeerGID.Addr.Unmap(), p.MTU)
		}
	}
}
