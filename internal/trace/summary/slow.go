package summary

import (
	"fmt"
	"time"
)

// A link is slow if its messages take so many times as long as those of others.
const (
	slowTimes    = 1.5
	leastSlower  = 10_000 // ns: less is how a machine that is busy happens to run its threads
	leastSamples = 3      // messages of a size on a link, and links with such
)

// slow compares, size for size, what messages take on each link with the median of
// the links, and tells which stand out.
func (r *Report) slow(links []*Link) {
	flights, sends := map[int][]int64{}, map[int][]int64{}
	for _, l := range links {
		for size, t := range l.sizes {
			if len(t.flights) >= leastSamples {
				flights[size] = append(flights[size], median(t.flights))
				sends[size] = append(sends[size], median(t.sends))
			}
		}
	}
	for _, l := range links {
		size, most := 0, 0 // the size of which it has most
		for s, t := range l.sizes {
			if n := len(t.flights); n >= leastSamples && len(flights[s]) >= leastSamples && (n > most || n == most && s > size) {
				size, most = s, n
			}
		}
		if most > 0 {
			what := fmt.Sprintf("%d messages of up to %s", most, Size(1<<size))
			r.judge(l, what, compare(l.sizes[size].flights, flights[size]), compare(l.sizes[size].sends, sends[size]))
		}
	}
}

// comparison is of one link with all.
type comparison struct {
	own, others int64 // ns, at the median
	links       int
	times       float64
}

func compare(own, others []int64) comparison {
	c := comparison{own: median(own), others: median(others), links: len(others)}
	if c.others > 0 {
		c.times = float64(c.own) / float64(c.others)
	}
	return c
}

func (c comparison) String() string {
	return fmt.Sprintf("took %v at the median, %.1f times as long as the median of %d links, %v", time.Duration(c.own), c.times, c.links, time.Duration(c.others))
}

// judge accuses a link only of what the clocks can tell. What they cannot, the
// sender's own may: over RDMA a send is done when the receiver's card has it.
func (r *Report) judge(l *Link, what string, flight, send comparison) {
	l.Slower = flight.times
	if flight.times < slowTimes || flight.own-flight.others < leastSlower {
		return
	}
	link := fmt.Sprintf("the link from %s to %s (%s, %s to %s)", l.From, l.To, l.Network, l.FromDevice, l.ToDevice)
	certain := !l.Unknown && uint64(flight.own-flight.others) > l.Bound
	bySender := l.Network == "RDMA" && send.times >= slowTimes
	l.Slow = certain || bySender
	switch {
	case certain:
		r.find("slow-link", link+" is slow", fmt.Sprintf("%s %v; the clocks' error is at most %v", what, flight, time.Duration(l.Bound)))
	case bySender:
		r.find("slow-link", link+" is slow", fmt.Sprintf("%s %v, by the sender's own clock", what, send))
	case l.Network == "RDMA":
	case l.Unknown:
		r.Notes = append(r.Notes, fmt.Sprintf("perhaps %s is slow: %s %v; but the error of the clocks is not known", link, what, flight))
	default:
		r.Notes = append(r.Notes, fmt.Sprintf("perhaps %s is slow: %s %v; but the clocks may be wrong by %v", link, what, flight, time.Duration(l.Bound)))
	}
}
