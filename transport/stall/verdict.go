package stall

import (
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

// kind is what is known of who is waited for.
type kind uint8

const (
	unknown kind = iota // it was not asked yet, or has time to reply
	mute                // its weft is older and knows no such question
	silent              // it has not replied
	runs                // it replies, and does not know what it waits for
	late                // it waits for nobody
	chained             // it waits itself
	way                 // both have done their part, and the message does not come
)

// verdict is that, and what follows from it.
type verdict struct {
	kind  kind
	begun bool // of late, runs and chained: it has begun its part, and does not go on

	next   string // of chained: whom it waits for
	why    uint8
	millis uint32

	end   uint8     // what all comes from in the end, as far as is known
	who   string    // whom that concerns
	known time.Time // when that was seen last
}

// endLife is for how long what was heard of the end of a chain holds: in a circle
// it would go round for ever.
const endLife = 5 * time.Second

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
	stands := !m.Asks && (m.Owes || sends && why == wire.WaitWay)
	switch {
	case begun && !stands:
		return verdict{kind: way, end: wire.EndWay, known: at}
	case !m.Watches:
		return verdict{kind: runs, begun: begun}
	case m.Why == wire.WaitNone && m.End == wire.EndBroken:
		return verdict{kind: late, begun: begun, end: m.End, who: m.EndWho, known: at}
	case m.Why == wire.WaitNone:
		v := verdict{kind: late, begun: begun, end: wire.EndLate, known: at}
		if m.Moves {
			v.end = wire.EndBusy
		}
		return v
	}
	v := verdict{kind: chained, begun: begun, next: m.For, why: m.Why, millis: m.Millis}
	if age := time.Duration(m.EndAge) * time.Millisecond; m.End != wire.EndUnknown && age < endLife {
		v.end, v.who, v.known = m.End, m.EndWho, at.Add(-age)
	}
	return v
}

// find judges a wait; w.mu is held.
func (w *Watcher) find(x *wait, now time.Time) {
	var v verdict
	peer := nameOf(x.session)
	switch {
	case x.session.Peer.Flags&wire.FlagWaits == 0:
		v = verdict{kind: mute}
	case !x.asked.IsZero() && now.Sub(x.asked) >= w.patience:
		v = verdict{kind: silent, end: wire.EndSilent, who: peer, known: now}
		if quiet, known := x.session.Conn.Silence(); known && quiet > now.Sub(x.asked)+w.every {
			v.end = wire.EndDown
		}
	case x.reply != nil:
		v = replied(x.key.sends, x.why, &x.look, x.reply, x.replied)
		switch {
		case v.kind == way && x.key.sends:
			v.who = wayOf(w.self, peer)
		case v.kind == way:
			v.who = wayOf(peer, w.self)
		case v.kind == late && v.end != wire.EndBroken:
			v.who = peer
		case v.next == w.self:
			v.next = "this process"
		}
	}
	if v.kind != x.verdict.kind {
		x.settled = now
	}
	x.verdict = v
}

// ripe reports whether a line may be said: what has been seen once may have been
// on its way.
func (w *Watcher) ripe(x *wait, now time.Time) bool {
	if x.waited < x.next || x.verdict.kind == unknown {
		return false
	}
	since := now.Sub(x.settled)
	switch v := &x.verdict; {
	case v.kind == silent, v.kind == mute:
		return true
	case v.kind == chained && v.end == wire.EndUnknown: // others may be about to find out
		return since >= w.patience+4*w.every
	}
	return since >= 2*w.every
}
