package port

import (
	"sync"

	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
)

// state is what changes about a port. An event may come while another goroutine
// asks the card: so every question and event has a number, and what an earlier one
// says does not replace what a later one said.
type state struct {
	sync.Mutex
	gids   []gid.GID    // protected, as all below; usable, best first, never empty
	port   ibv.PortAttr // asked with gids
	down   string       // why the port cannot be used at the moment, "" while it can
	number uint64       // of the last question or event
	gidsOf uint64       // the one that gids are of
	downOf uint64       // the one that down is of
}

// asks numbers a question about a port, or an event of it.
func (s *state) asks() uint64 {
	s.Lock()
	defer s.Unlock()
	s.number++
	return s.number
}

// setDown keeps what question or event n said.
func (s *state) setDown(why string, n uint64) {
	s.Lock()
	defer s.Unlock()
	if n > s.downOf {
		s.down, s.downOf = why, n
	}
}
