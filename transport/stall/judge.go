package stall

import (
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

// state is what a comm does by two looks at it.
type state uint8

const (
	idle  state = iota // its host asks for nothing
	moves              // something has come, or was begun
	rests              // something is under way, and its host does not ask for it
	waits              // its host asks in vain
)

// judge compares two looks at a comm. why is what a host that waits, or rests, waits
// for, as this side sees it.
func judge(sends bool, was, is *fastpath.Look) (s state, why uint8) {
	asks := is.Rounds != was.Rounds
	switch {
	case !same(was, is):
		return moves, wire.WaitNone
	case !sends && is.Incomplete == 0:
		return idle, wire.WaitNone
	case !sends && is.Parts > 0, sends && is.Unsent > 0:
		why = wire.WaitPath
	case !sends:
		why = wire.WaitSend
	default:
		why, asks = wire.WaitReceive, is.Vain != was.Vain
	}
	switch {
	case asks:
		return waits, why
	case is.Outstanding == 0:
		return idle, wire.WaitNone
	}
	return rests, why
}

// same reports whether nothing has come and nothing was begun between two looks.
func same(a, b *fastpath.Look) bool {
	return a.Begun == b.Begun && a.Outstanding == b.Outstanding && a.Done == b.Done && a.Unsent == b.Unsent &&
		a.Incomplete == b.Incomplete && a.Group == b.Group && a.Next == b.Next && a.Parts == b.Parts
}

// traffic is what the kernel has done with packets.
type traffic struct{ packets, again uint64 }

// seen is a comm as it was seen last.
type seen struct {
	look   fastpath.Look
	state  state
	why    uint8
	asks   bool          // its host has asked since the look before
	moved  uint64        // what carries it had moved so much
	waited time.Duration // the looks in which its host has asked in vain, since it moved last
	rested int           // looks since it asked last
	sent   traffic       // at the last count
}

// restMost is how many looks a host that waits may not ask, as on a busy machine,
// before it counts as one that does not wait any more.
const restMost = 8

// saw takes in a look, a while after the one before. progress tells how far what
// carries the comm has come within a message; it is asked only where the rest
// stands still.
func (x *seen) saw(sends bool, now fastpath.Look, after time.Duration, progress func() uint64) {
	was := x.look
	x.look, x.asks = now, now.Rounds != was.Rounds || now.Vain != was.Vain
	x.state, x.why = judge(sends, &was, &now)
	if x.state == waits {
		if moved := progress(); moved != x.moved {
			x.moved, x.state = moved, moves
		}
	}
	switch x.state {
	case waits:
		x.waited += after
		x.rested = 0
	case rests:
		if x.rested++; x.rested > restMost {
			x.waited = 0
		}
	case idle:
		if x.rested++; x.waited == 0 || x.rested > restMost {
			x.waited = 0
			return
		}
		x.state = rests
	case moves:
		x.waited, x.rested = 0, 0
	}
}
