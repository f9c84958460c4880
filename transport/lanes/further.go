package lanes

import (
	"context"
	"sync"
	"sync/atomic"

	"weft/transport/wire"
)

// A connect makes and proves one lane. The further ones, more on the same ports
// (NCCL_IB_QPS_PER_CONNECTION) and those on the other ports of fused devices, come
// when the comm is open, all at once, over the session:
//
//	connecting side           listening side
//	make    -- further -->    make, connect
//	        <-- answer ---
//	connect, prove -- join -> prove, hand to the executor
//	        <-- joined ---
//	hand to the executor, which uses them from the first group on whose
//	receives have keys for every port
//
// The connecting side's watcher says when. A pair of ports for which anything
// fails is left out; the comm goes on with the lanes that it has.

// further tells how far a comm's further lanes have come.
type further struct {
	begun   atomic.Bool             // by either side; it is tried once
	busy    sync.Mutex              // held while they are made: the comm's end waits for that
	now     context.CancelCauseFunc // ends what is being made; protected by Carrier.life
	told    atomic.Int32            // times that lost lanes were told
	answers chan *wire.FurtherAnswer
	joins   chan *wire.Join
	joined  chan *wire.Joined
}

func (g *further) init() {
	g.answers, g.joins, g.joined = make(chan *wire.FurtherAnswer, 1), make(chan *wire.Join, 1), make(chan *wire.Joined, 1)
}

// begin reports, once, that they may be made.
func (g *further) begin() bool { return g.begun.CompareAndSwap(false, true) }
