package route

import (
	"fmt"
	"math"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// What requests carry themselves, in bytes.
const (
	laneInline  = 64  // payload that a request carries itself: one CTS line
	smallInline = 256 // where only small messages are to come
)

// Tuning is how a comm uses its lanes: what the knobs say, else what the hints
// suggest that NCCL gave its context (setNetAttr) for this connect. Those that
// NCCL gives later, for each operation, change faster than lanes could follow,
// and several operations are under way at a time: they leave comms as they are.
type Tuning struct {
	Inline        int
	Width         int // lanes of one message, once all are there
	StripeMin     uint32
	AdaptiveAbove uint32 // bytes above which a message has an end of its own; 0: never
	AnyOrder      bool   // requests may arrive in any order
}

// Tune decides once, before anything of a comm of so many lanes is made.
func Tune(k *knob.Values, hints rdma.Attr, kind fastpath.Kind, pairs []Pair, lanes int) Tuning {
	t := Tuning{Inline: laneInline, Width: len(pairs), StripeMin: uint32(k.Int(knob.StripeMin)), AnyOrder: k.Int(knob.IBOOORQ) != 0}
	if !t.AnyOrder { // completions that come in order say all that an end of its own would
		t.AdaptiveAbove = Adaptive(k, pairs)
	}
	mine := hints.Send
	if kind == fastpath.Recv {
		mine = hints.Recv
	}
	busy := hints.Busy(mine)
	switch split, set := k.Int(knob.IBSplitDataOnQPs), k.Origin(knob.IBSplitDataOnQPs) == knob.FromEnvironment; {
	case split != 0:
		t.Width = lanes
	case !set && busy > 0: // what the connections that are used at a time leave one another
		t.Width = max(t.Width, (lanes+busy-1)/busy)
	}
	if hints.Small() {
		t.Inline = smallInline
		if k.Origin(knob.StripeMin) != knob.FromEnvironment {
			t.StripeMin = math.MaxUint32
		}
	}
	return t
}

// Adaptive is the size above which a message is ended by a request of its own,
// because the fabric may deliver packets out of order; 0 where it does not. One
// port that does not makes the comm one that need not care.
func Adaptive(k *knob.Values, pairs []Pair) uint32 {
	on := k.Int(knob.IBAdaptiveRouting)
	for i := range pairs {
		if on == 0 || on < 0 && !pairs[i].Local.InfiniBand {
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
func (t Tuning) String() string {
	qps := fmt.Sprintf("%d QP%s per message", t.Width, report.Plural(t.Width))
	switch {
	case t.AnyOrder:
		return qps + ", adaptive routing with out-of-order receives"
	case t.AdaptiveAbove == 0:
		return qps + ", no adaptive routing"
	}
	return fmt.Sprintf("%s, adaptive routing above %d byte%s", qps, t.AdaptiveAbove, report.Plural(int(t.AdaptiveAbove)))
}
