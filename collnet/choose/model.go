package choose

import (
	"math"
	"time"

	"weft/collnet/schedule"
)

// What the model knows beside the measured path.
const (
	perRound  = 1 * time.Microsecond // assumed: the engine's turn
	reduction = 10e9                 // bytes read per second; measured 17.8e9 for float inside the L2, assumed beyond it
)

// All ranks compute these times, and must choose alike: where a product is added to something, float64 keeps the compiler
// from joining both, which some processors can and others cannot (TestRanksComputeAlike).

// Time is how long an algorithm is expected to take for an operation: the latency
// of its rounds, and what it moves and computes, of which chunks do one while
// others do the other, unless the thread that computes is what moves the bytes. A
// track has a chunk at a time, from its first round to its last.
func Time(op schedule.Op, a schedule.Algorithm, f Fabric) time.Duration {
	c := costOf(op, a)
	links := 1.0
	if f.cabled() {
		links = c.links
	}
	chunks := math.Ceil(max(total(op), 1) / f.chunk())
	latency := float64(c.rounds * (f.Path.Latency + perRound).Seconds())
	wire := c.sent / links / f.bandwidth()
	work := c.reduced/reduction + float64(f.Path.Gap.Seconds()*max(c.messages-c.rounds, 0))
	if chunks > 1 {
		work += float64(f.Path.Gap.Seconds() * c.messages * (chunks - 1))
	}
	moved := max(wire, work) + min(wire, work)/chunks
	if f.Copied {
		moved = wire + work
	}
	return seconds(max(latency+moved, math.Ceil(chunks/float64(TracksOf(op.N)))*(latency+(wire+work)/chunks)))
}

// bandwidth is never zero: what was not measured is slow, not free.
func (f Fabric) bandwidth() float64 { return max(f.Path.Bandwidth, 1e6) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
