package transport

import (
	"errors"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/verbs"
)

// Two ports may have a larger MTU than what lies between them: a switch port drops
// what it cannot take, and a queue pair's writes are repeated in vain. A proof
// tells the largest packets that pass, and queue pairs between these ports are made
// for those from then on.

// narrowPair is a pair of ports between which packets of full size are lost.
type narrowPair struct {
	wide, mtu int  // bytes of payload: what is lost, what passes
	said      bool // that it is used
}

// narrowed takes in how a proof failed, and reports whether smaller packets pass.
func (s *session) narrowed(p *route.Pair, why error) bool {
	u := (*verbs.Unanswered)(nil)
	if !errors.As(why, &u) || u.Passes == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.narrow[p.Key()]
	if was == nil {
		if s.narrow == nil {
			s.narrow = map[[2]uint16]*narrowPair{}
		}
		was = &narrowPair{wide: u.MTU, mtu: u.Passes}
		s.narrow[p.Key()] = was
	}
	was.mtu = min(was.mtu, u.Passes)
	return true
}

// limit tells pairs of ports what is known of their paths.
func (s *session) limit(pairs []route.Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range pairs {
		if n := s.narrow[pairs[i].Key()]; n != nil {
			pairs[i].MTU = n.mtu
		}
	}
}

// tellNarrow says once of each pair that its packets are smaller than they could be.
func (s *session) tellNarrow(pairs []route.Pair, dev, peer string, log report.Logger) {
	for i := range pairs {
		p := &pairs[i]
		s.mu.Lock()
		n := s.narrow[p.Key()]
		say := n != nil && !n.said && p.MTU > 0
		if say {
			n.said = true
		}
		s.mu.Unlock()
		if say {
			log.Warn("%s -> %s: RDMA packets of MTU %d are lost between %s (%v) and %v, those of %d pass and are used: transfers are slower than they could be; a switch port or tunnel between takes less than the ports' MTU and its headers: raise it there, or lower the MTU of the interfaces on both hosts",
				dev, peer, n.wide, p.Local.Name, p.GID.Addr.Unmap(), p.PeerGID.Addr.Unmap(), p.MTU)
		}
	}
}
