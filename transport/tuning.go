package transport

import (
	"fmt"
	"math"

	"weft/internal/knob"
	"weft/transport/fastpath"
)

const (
	laneInline  = 64  // payload that a request carries itself: one CTS line
	smallInline = 256 // where only small messages are to come
)

// tuning is how a comm uses its lanes: what the knobs say, else what the hints
// suggest that NCCL gave its context (setNetAttr) for this connect. Those that
// NCCL gives later, for each operation, change faster than lanes could follow,
// and several operations are under way at a time: they leave comms as they are.
type tuning struct {
	inline    int
	width     int // lanes of one message, once all are there
	stripeMin uint32
	ar        uint32 // bytes above which a message has an end of its own; 0: never
	anyOrder  bool   // requests may arrive in any order
}

// tune decides once, before anything of a comm of so many lanes is made.
func (x *Context) tune(kind fastpath.Kind, pairs []verbsPair, lanes int) tuning {
	k, hints := x.core.cfg.Knobs, x.opts.Hints()
	t := tuning{inline: laneInline, width: len(pairs), stripeMin: uint32(k.Int(knob.StripeMin)), anyOrder: k.Int(knob.IBOOORQ) != 0}
	if !t.anyOrder { // completions that come in order say all that an end of its own would
		t.ar = x.core.adaptive(pairs)
	}
	mine := hints.Send
	if kind == fastpath.Recv {
		mine = hints.Recv
	}
	busy := hints.Busy(mine)
	switch split, set := k.Int(knob.IBSplitDataOnQPs), k.Origin(knob.IBSplitDataOnQPs) == knob.FromEnvironment; {
	case split != 0:
		t.width = lanes
	case !set && busy > 0: // what the connections that are used at a time leave one another
		t.width = max(t.width, (lanes+busy-1)/busy)
	}
	if hints.Small() {
		t.inline = smallInline
		if k.Origin(knob.StripeMin) != knob.FromEnvironment {
			t.stripeMin = math.MaxUint32
		}
	}
	return t
}

// adaptive is the size above which a message is ended by a request of its own,
// because the fabric may deliver packets out of order; 0 where it does not. One
// port that does not makes the comm one that need not care.
func (c *Core) adaptive(pairs []verbsPair) uint32 {
	k := c.cfg.Knobs
	on := k.Int(knob.IBAdaptiveRouting)
	for i := range pairs {
		if on == 0 || on < 0 && !pairs[i].local.InfiniBand {
			return 0
		}
	}
	above := k.Int(knob.IBARThreshold)
	if above < 0 {
		above = arThreshold
	}
	return uint32(max(1, above)) // one byte is one packet
}

const arThreshold = 8192 // what -2 stands for

// String is the part of a comm's line about it.
func (t tuning) String() string {
	switch {
	case t.anyOrder:
		return fmt.Sprintf("%d a message, adaptive routing with out-of-order receives", t.width)
	case t.ar == 0:
		return fmt.Sprintf("%d a message, no adaptive routing", t.width)
	}
	return fmt.Sprintf("%d a message, adaptive routing above %d byte%s", t.width, t.ar, plural(int(t.ar)))
}
