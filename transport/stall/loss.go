package stall

import (
	"fmt"
	"maps"
	"time"
)

// A way is lossy if of what the kernel has sent there so much had to be sent again
// in each of two counts: a burst is how a queue overflows on a busy machine.
const (
	lossEvery = 4    // looks from one count to the next
	lossLeast = 10   // packets: a few are how congestion shows
	lossPart  = 0.02 // of all
	lossAgain = 10 * time.Second
)

// sent is what the kernel has done with packets.
type sent struct{ packets, again uint64 }

// lossy is a way that loses packets.
type lossy struct {
	count uint      // the last one that has found it
	next  time.Time // not before that a line again
	pause time.Duration
}

// losses counts what was sent again on each way since the last count, and returns
// the lines about it; w.mu is held.
func (w *Watcher) losses(all []Subject, now time.Time) (lines []line) {
	if w.looks++; w.looks%lossEvery != 0 {
		return nil
	}
	sums, of := map[waitKey]sent{}, map[waitKey]Subject{}
	for _, c := range all {
		x, s := w.comms[c], c.Standing()
		if x == nil || s == nil || !c.Sends() {
			continue
		}
		was := x.sent
		x.sent.packets, x.sent.again = c.Sent()
		if was.packets == 0 {
			continue
		}
		k := keyOf(c, s)
		sum := sums[k]
		sums[k], of[k] = sent{sum.packets + x.sent.packets - was.packets, sum.again + x.sent.again - was.again}, c
	}
	for k, sum := range sums {
		part := float64(sum.again) / float64(sum.packets)
		if sum.again < lossLeast || part < lossPart {
			continue
		}
		x := w.lossy[k]
		again := x.count+lossEvery == w.looks
		if x.count = w.looks; again && len(lines) < linesMost && !now.Before(x.next) {
			x.pause = max(lossAgain, 2*x.pause)
			x.next = now.Add(x.pause)
			lines = append(lines, w.loses(k, of[k], part))
		}
		w.lossy[k] = x
	}
	maps.DeleteFunc(w.lossy, func(_ waitKey, x lossy) bool { return x.count+lossEvery < w.looks && now.After(x.next.Add(x.pause)) })
	return lines
}

// loses is the line about one.
func (w *Watcher) loses(k waitKey, c Subject, part float64) line {
	to := nameOf(c.Member().Session)
	return line{c.Log(), fmt.Sprintf("loss: %.1f%% of the packets to %s (%s -> %s) had to be sent again, in the last %s: %s loses them",
		100*part, to, k.own, k.peer, short(lossEvery*w.every), wayOf(w.self, to))}
}
