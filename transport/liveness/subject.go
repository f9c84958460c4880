package liveness

import (
	"time"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/event"
)

// Subject is what the watcher looks after: queue pairs that are to carry a comm,
// or carry one. It is a pointer.
type Subject interface {
	// Routes are the pairs of ports that the lanes run over, in the executor's order.
	Routes() []*route.Pair
	// Class is how their packets are marked.
	Class() Class
	// Progress is how far the lanes have come, in the memory of into if there is
	// enough; waits says that one which does not complete holds the comm up.
	Progress(into []fastpath.LaneState) (lanes []fastpath.LaneState, waits bool)
	// Tick is the subject's own turn, while s carries its comm.
	Tick(s *session.Session)
	// Struck reports whether a fatal event means it, and ends what it is making if
	// the event means that.
	Struck(e *event.Event) bool
	// Spoil keeps its queue pairs from serving again.
	Spoil()
	// Drain takes in what has arrived.
	Drain()
}

// key is a pair of ports as one session uses it in one class of traffic: indices
// here and there. Classes may fare differently on the same cable.
type key struct {
	session     *session.Session
	local, peer uint16
	class       Class
}

// Class is what the sending side's packets ask of the network.
type Class struct{ SL, TC uint8 }

// keyOf is the key of a pair of ports that v runs over.
func keyOf(v Subject, s *session.Session, p *route.Pair) key {
	return key{s, p.LocalIndex, p.PeerIndex, v.Class()}
}

// pairOf is the pair of a lane, which may have joined since pairs were asked for.
func pairOf(pairs []*route.Pair, lane int) *route.Pair {
	if lane >= len(pairs) {
		lane = 0
	}
	return pairs[lane]
}

// watched is a subject as it was seen last. All is protected by Watcher.mu.
type watched struct {
	comm   carrier.Comm // nil: in its handshake
	doomed error        // what ended it there
	lanes  []progress
}

type progress struct {
	completed uint32
	since     time.Time // it stands there with requests outstanding; zero: none are
}

// session is the one of a comm that neither side has closed or given up.
func (x *watched) session() *session.Session {
	if x.comm == nil {
		return nil
	}
	return x.comm.Standing()
}
