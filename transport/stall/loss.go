package stall

import (
	"maps"
	"time"
)

// A path is lossy if of what the kernel has sent there so much had to be sent again
// in each of two counts: a burst is how a queue overflows on a busy machine.
const (
	lossEvery = 4    // looks from one count to the next
	lossLeast = 10   // packets: a few are how congestion shows
	lossPart  = 0.02 // of all
	lossAgain = 10 * time.Second
)

// losses are the paths that lose packets.
type losses struct {
	looks uint // so far
	lossy map[path]lossy
}

type lossy struct {
	count uint      // the last one that has found it
	next  time.Time // not before that a line again
	pause time.Duration
}

// loss is a path of which a line is due, and which part of its packets was sent again.
type loss struct {
	path path
	part float64
}

// due counts a look, and reports whether it is one that counts packets.
func (l *losses) due() bool {
	l.looks++
	return l.looks%lossEvery == 0
}

// add takes in what a comm has sent so far, and adds what that is since the last
// count to its path's; false: this is its first count.
func (x *seen) add(sums map[path]traffic, p path, packets, again uint64) bool {
	was := x.sent
	x.sent = traffic{packets, again}
	if was.packets == 0 {
		return false
	}
	sum := sums[p]
	sums[p] = traffic{sum.packets + packets - was.packets, sum.again + again - was.again}
	return true
}

// count takes in what was sent on each path since the last count, and returns those
// of which a line is due, at most so many.
func (l *losses) count(sums map[path]traffic, most int, now time.Time) (all []loss) {
	for p, sum := range sums {
		part := float64(sum.again) / float64(sum.packets)
		if sum.again < lossLeast || part < lossPart {
			continue
		}
		x := l.lossy[p]
		again := x.count+lossEvery == l.looks
		if x.count = l.looks; again && len(all) < most && !now.Before(x.next) {
			x.pause = max(lossAgain, 2*x.pause)
			x.next = now.Add(x.pause)
			all = append(all, loss{p, part})
		}
		l.lossy[p] = x
	}
	maps.DeleteFunc(l.lossy, func(_ path, x lossy) bool { return x.count+lossEvery < l.looks && now.After(x.next.Add(x.pause)) })
	return all
}
