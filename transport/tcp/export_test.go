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

// Turn takes one, a quarter of a millisecond after the last, and says what came of it.
func (o *TurnedCoalescer) Turn() (sent, more bool) {
	o.now = o.now.Add(250 * time.Microsecond)
	sent, more = o.turn(func() time.Time { return o.now })
	o.running = true
	return sent, more
}
