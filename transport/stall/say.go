package stall

import (
	"fmt"
	"math"
	"time"

	"weft/internal/report"
	"weft/transport/wire"
)

// linesMost bounds the lines of one look, of waits and of those that are over each;
// one more says how many there are besides.
const linesMost = 4

// line is one for the log.
type line struct {
	log  report.Logger
	text string
}

// waitLines are those about waits that last.
func waitLines(sorted []*wait, p pace, now time.Time) (all []line) {
	more, comms := 0, 0
	var log report.Logger
	for _, x := range sorted {
		if !x.ripe(p, now) {
			continue
		}
		x.said = true
		x.next = min(x.waited, math.MaxInt64/2) * 2
		if len(all) < linesMost {
			all = append(all, line{x.of.Log(), x.text()})
			continue
		}
		more, comms, log = more+1, comms+x.count, x.of.Log()
	}
	if more > 0 {
		all = append(all, line{log, fmt.Sprintf("stall: %d more waits on %d connections, not listed", more, comms)})
	}
	return all
}

// overLines are those about waits that are over.
func overLines(over []*wait) (all []line) {
	for i, x := range over {
		if i == linesMost {
			return append(all, line{x.of.Log(), fmt.Sprintf("stall: %d more waits are over, not listed", len(over)-i)})
		}
		all = append(all, line{x.of.Log(), fmt.Sprintf("stall: %s moves again, after %s", x.title(), short(x.longest))})
	}
	return all
}

// title says what waits.
func (x *wait) title() string {
	verb, arrow := "receive from", "<-"
	if x.path.sends {
		verb, arrow = "send to", "->"
	}
	return fmt.Sprintf("%s %s (%s %s %s)", verb, x.peer, x.path.own, arrow, x.path.peer)
}

// text is the line about a wait.
func (x *wait) text() string {
	many := ""
	if n := x.count - 1; n > 0 {
		many = fmt.Sprintf(", with %d more connection%s of these devices", n, report.Plural(n))
	}
	return fmt.Sprintf("stall: %s has waited %s%s: %s", x.title(), short(x.waited), many, x.reason())
}

// reason is the verdict, unless the fault is nearer: what a device without a link does not deliver is no fault of the peer's. It
// ends in the rules of weft doctor that look into such a fault.
func (x *wait) reason() string {
	v, by := &x.verdict, carriers[x.of.Cabled()]
	if v.kind == undelivered || v.kind == silent && v.root == wire.RootDown {
		if why := x.of.OutOfUse(); why != "" {
			return "nothing passes here: " + why + by.noLink
		}
	}
	if v.kind == undelivered {
		return v.text(x.sends, x.why) + by.noDelivery
	}
	return v.text(x.sends, x.why)
}

// rules are those of weft doctor that look into what a line tells of what moves bytes.
type rules struct{ noLink, noDelivery string }

// carriers has them by whether cards move the bytes.
var carriers = map[bool]rules{
	false: {noDelivery: " [WEFT-115 WEFT-143 WEFT-165]"},
	true:  {noLink: " [WEFT-030 WEFT-035]", noDelivery: " [WEFT-130 WEFT-135 WEFT-165]"},
}

// text says who is waited for, and why.
func (v *verdict) text(sends bool, why uint8) string {
	lacks := map[uint8]string{
		wire.WaitReceive: "its NCCL has posted no receive", wire.WaitSend: "its NCCL has sent nothing",
		wire.WaitPath: "its NCCL does not go on with it",
	}[why]
	if v.begun {
		lacks = "its NCCL has begun its part and does not go on with it"
	}
	const it = "that process"
	switch v.kind {
	case mute:
		return lacks + ", as far as this host hears; the weft of that process is older, and cannot be asked what it waits for"
	case silent:
		return v.cause(it)
	case unaware:
		return lacks + "; that process runs without WEFT_PROFILE=stall, and does not know what it waits for"
	case last:
		return lacks + "; " + v.cause(it)
	case undelivered:
		return unmet(sends, why) + "; check the path between the two devices"
	}
	text := fmt.Sprintf("%s; that process runs and waits itself for %s to %s, for %s", lacks, v.next, wants(v.why), short(time.Duration(v.millis)*time.Millisecond))
	switch {
	case v.root == wire.RootUnknown:
		return text
	case v.who == v.next:
		return text + "; " + v.cause(v.next)
	}
	return text + "; root cause: " + v.cause(v.who)
}

// unmet says what both sides have done.
func unmet(sends bool, why uint8) string {
	switch {
	case sends && why == wire.WaitReceive:
		return "its NCCL has posted the receive, and this host does not hear of it"
	case sends:
		return "its NCCL waits for it, and what was sent is not acknowledged"
	}
	return "its NCCL has sent it, and it has not come"
}

// cause says what is wrong with the root of the chain.
func (v *verdict) cause(who string) string {
	switch v.root {
	case wire.RootDown:
		return who + " does not reply, and neither does its machine: that is down or stands still, or the network to it is cut"
	case wire.RootBroken:
		return v.who + " has failed, as the logs of both sides say, and that process waits for nobody"
	case wire.RootSilent:
		return who + " does not reply, though its machine does: it is stopped or frozen, or gets no CPU"
	case wire.RootOutside:
		return who + " runs and waits for nobody: what keeps it is outside of the network (its program, its GPU)"
	case wire.RootBusy:
		return who + " runs, and other connections of it move: it is behind with its work"
	}
	return who + " does not deliver what was sent"
}

// wants is what a process that waits wants another to do, as weft trace stall has it.
func wants(why uint8) string {
	switch why {
	case wire.WaitReceive:
		return "post a receive"
	case wire.WaitSend:
		return "send"
	}
	return "get what was sent"
}

// short rounds to what people read.
func short(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// text is the line about a path that loses packets, of a process, self, to another.
func (l *loss) text(self, to string, in time.Duration) string {
	return fmt.Sprintf("loss: %.1f%% of the packets to %s (%s -> %s) were retransmitted in the last %s: packet loss on %s [WEFT-137 WEFT-138 WEFT-143]",
		100*l.part, to, l.path.own, l.path.peer, short(in), between(self, to))
}
