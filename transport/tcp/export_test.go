package tcp

import (
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
)

// WriteCoalesced writes what small sends have left behind.
func WriteCoalesced(c *fastpath.Comm) bool { return writeCoalesced(c) }

// TurnedCoalescer is one whose turns a test takes itself.
type TurnedCoalescer struct {
	*Coalescer
	now time.Time
}

// NewTurnedCoalescer returns one.
func NewTurnedCoalescer(lingers func(n int)) *TurnedCoalescer {
	o := &TurnedCoalescer{Coalescer: NewCoalescer(report.Discard{}, lingers)}
	o.running = true // nobody else takes them
	return o
}

// Begin adds a comm as if it were now.
func (o *TurnedCoalescer) Begin(c *fastpath.Comm) {
	o.Add(c)
	o.now = o.comms[len(o.comms)-1].at
}

// Turn takes one, as long after the last as turns are, and says what came of it.
func (o *TurnedCoalescer) Turn() (sent, more bool) {
	o.now = o.now.Add(coalesceEvery)
	sent, more = o.turn(o.now)
	o.running = true
	return sent, more
}
