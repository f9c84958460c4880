package stall

import (
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

// kind is what is known of who is waited for.
type kind uint8

const (
	unknown     kind = iota // it was not asked yet, or has time to reply
	mute                    // its weft is older and knows no such question
	silent                  // it has not replied
	unaware                 // it replies, and does not know what it waits for
	last                    // it waits for nobody
	chained                 // it waits itself
	undelivered             // both have done their part, and the message does not come
)

// verdict is that, and what follows from it.
type verdict struct {
	kind  kind
	begun bool // of last, unaware and chained: it has begun its part, and does not go on

	next   string // of chained: whom it waits for
	why    uint8
	millis uint32

	root  uint8     // what all comes from, as far as is known
	who   string    // whom that concerns
	known time.Time // when that was seen last
}

// rootLife is for how long what was heard of the root of a chain holds: in a circle
// it would go round for ever.
const rootLife = 5 * time.Second

// inquiry is what is asked and heard of a process about a comm that waits.
type inquiry struct {
	self, peer string // the two processes
	older      bool   // the peer's weft knows no questions
	sends      bool
	why        uint8 // what the comm waits for, as this side sees it
	look       fastpath.Look

	asked   time.Time // the question that has no reply yet; zero: there is none
	replied time.Time
	reply   *wire.WaitReply // the last one
}

// conclude returns what is known now. silence tells for how long the peer's machine has
// not even acknowledged anything.
func (q *inquiry) conclude(p pace, now time.Time, silence func() (d time.Duration, known bool)) verdict {
	switch {
	case q.older:
		return verdict{kind: mute}
	case !q.asked.IsZero() && now.Sub(q.asked) >= p.patience:
		v := verdict{kind: silent, root: wire.RootSilent, who: q.peer, known: now}
		if quiet, known := silence(); known && quiet > now.Sub(q.asked)+p.every {
			v.root = wire.RootDown
		}
		return v
	case q.reply == nil:
		return verdict{}
	}
	v := replied(q.sends, q.why, &q.look, q.reply, q.replied)
	switch {
	case v.kind == undelivered && q.sends:
		v.who = between(q.self, q.peer)
	case v.kind == undelivered:
		v.who = between(q.peer, q.self)
	case v.kind == last && v.root != wire.RootBroken:
		v.who = q.peer
	case v.next == q.self:
		v.next = "this process"
	}
	return v
}

// replied judges what a process has said of the comm for which this one waits.
func replied(sends bool, why uint8, look *fastpath.Look, m *wire.WaitReply, at time.Time) verdict {
	begun := m.Groups >= look.Group
	switch {
	case sends && why == wire.WaitReceive:
		begun = begun && !look.Ready // else a receive of another tag is there
	case sends:
		begun = true // its receive is known
	case why == wire.WaitSend:
		begun = begun || m.Lacks
	}
	stands := !m.Asks && (m.Owes || sends && why == wire.WaitPath)
	switch {
	case begun && !stands:
		return verdict{kind: undelivered, root: wire.RootPath, known: at}
	case !m.Monitors:
		return verdict{kind: unaware, begun: begun}
	case m.Why == wire.WaitNone && m.Root == wire.RootBroken:
		return verdict{kind: last, begun: begun, root: m.Root, who: m.RootWho, known: at}
	case m.Why == wire.WaitNone:
		v := verdict{kind: last, begun: begun, root: wire.RootOutside, known: at}
		if m.Moves {
			v.root = wire.RootBusy
		}
		return v
	}
	v := verdict{kind: chained, begun: begun, next: m.For, why: m.Why, millis: m.Millis}
	if age := time.Duration(m.RootAge) * time.Millisecond; m.Root != wire.RootUnknown && age < rootLife {
		v.root, v.who, v.known = m.Root, m.RootWho, at.Add(-age)
	}
	return v
}
