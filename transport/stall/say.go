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

func name(host string, pid uint32) string { return fmt.Sprintf("%s:%d", host, pid) }

// line is one for the log.
type line struct {
	log  report.Logger
	text string
}

// lines are those about waits; w.mu is held.
func (w *Watcher) lines(sorted []*wait, now time.Time) (all []line) {
	more, comms := 0, 0
	var log report.Logger
	for _, x := range sorted {
		if !w.ripe(x, now) {
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
		all = append(all, line{log, fmt.Sprintf("stall: %d further waits of %d connections are not told one by one", more, comms)})
	}
	return all
}

// ends are the lines about waits that are over.
func ends(over []*wait) (all []line) {
	for i, x := range over {
		if i == linesMost {
			return append(all, line{x.of.Log(), fmt.Sprintf("stall: %d further waits are over as well", len(over)-i)})
		}
		all = append(all, line{x.of.Log(), fmt.Sprintf("stall: %s moves again, after %s", x.title(), short(x.longest))})
	}
	return all
}

// title says what waits.
func (x *wait) title() string {
	verb, arrow := "receive from", "<-"
	if x.key.sends {
		verb, arrow = "send to", "->"
	}
	return fmt.Sprintf("%s %s (%s %s %s)", verb, nameOf(x.session), x.key.own, arrow, x.key.peer)
}

// text is the line about a wait.
func (x *wait) text() string {
	many := ""
	if n := x.count - 1; n > 0 {
		many = fmt.Sprintf(", beside %d further connection%s between these", n, report.Plural(n))
	}
	return fmt.Sprintf("stall: %s has waited %s%s: %s", x.title(), short(x.waited), many, x.reason())
}

// reason is the verdict, unless the fault is nearer: what a device without a link does not bring is no fault of the peer's.
func (x *wait) reason() string {
	if v := &x.verdict; v.kind == way || v.kind == silent && v.end == wire.EndDown {
		if why := x.of.OutOfUse(); why != "" {
			return "nothing passes here: " + why
		}
	}
	return x.verdict.text(x.key.sends, x.why)
}

// text says who is waited for, and why.
func (v *verdict) text(sends bool, why uint8) string {
	lacks := map[uint8]string{
		wire.WaitReceive: "its NCCL has posted no receive", wire.WaitSend: "its NCCL has sent nothing",
		wire.WaitWay: "its NCCL does not go on with it",
	}[why]
	if v.begun {
		lacks = "its NCCL has begun its part and does not go on with it"
	}
	const it = "that process"
	switch v.kind {
	case mute:
		return lacks + ", as far as this host hears; the weft of that process is older, and cannot be asked what it waits for"
	case silent:
		return v.ending(it)
	case runs:
		return lacks + "; that process runs, and does not watch what it waits for (WEFT_PROFILE=stall)"
	case late:
		return lacks + "; " + v.ending(it)
	case way:
		return unmet(sends, why) + "; look at the way between the two devices"
	}
	text := fmt.Sprintf("%s; that process runs and waits itself for %s to %s, for %s", lacks, v.next, wants(v.why), short(time.Duration(v.millis)*time.Millisecond))
	switch {
	case v.end == wire.EndUnknown:
		return text
	case v.who == v.next:
		return text + "; " + v.ending(v.next)
	}
	return text + "; in the end, " + v.ending(v.who)
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

// ending says what is wrong with who is waited for in the end.
func (v *verdict) ending(who string) string {
	switch v.end {
	case wire.EndDown:
		return who + " does not reply, and neither does its machine: that is down or stands still, or the network to it is cut"
	case wire.EndBroken:
		return v.who + " has failed, as the logs of its ends say, and that process waits for nobody"
	case wire.EndSilent:
		return who + " does not reply, though its machine does: it is stopped or frozen, or gets no CPU"
	case wire.EndLate:
		return who + " runs and waits for nobody: what keeps it is outside of the network (its program, its GPU)"
	case wire.EndBusy:
		return who + " runs, and other connections of it move: it is behind with its work"
	}
	return who + " does not bring what was sent"
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
