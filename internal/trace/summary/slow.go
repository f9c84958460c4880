package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"weft/internal/trace/model"
)

// A link is slow if its messages take so many times as long as those of others. Where a process at its ends waits for a core for a
// part d of the time, what its threads do takes 1/(1-d) times as long, and chance decides of whose messages that is: slowTimes is
// multiplied by a power of it, between what links without a fault and links with one took on cores of which threads had a tenth. It is
// a higher one where the fastest messages are as fast as elsewhere, which speaks for the cores, or for a fault that has just begun. (Of
// links without a fault, one of that kind took 4.6 times as long at d = 0.71; of 14 with one 11 took more than that power says.) And
// where the two ends of a link share a core for a while, dozens of its messages in a row take long: the more they wait, the more
// messages are needed, leastAccused on cores of their own and moreByCores*d*d besides. (Of links without a fault, 90 messages took 21
// times as long at d = 0.75, and 10 messages 6 times at d = 0.71; of 33 links with one none had less than 318 at d from 0.65 to 0.91.)
const (
	byCores      = 0.6  // the power,
	byCoresAlone = 1.25 // and where some messages are fast
	moreByCores  = 400  // messages
	mostDelayed  = 0.98 // d counts up to this
	slowTimes    = 1.5
	leastSlower  = 10_000 // ns: less is how a machine that is busy happens to run its threads
	leastSamples = 3      // messages of a size on a link, and links with such
	lowest       = 0.1    // the part of a link's messages that are its fastest
	leastAccused = 8      // messages of a size on a link that is called slow: of a few, a core that was away for a moment makes the median
)

// suspect is a link with what its messages take, beside those of all.
type suspect struct {
	*Link
	messages     int
	needed       int    // with less it is not accused
	what         string // messages, in words
	flight, send comparison
}

// onWire reports whether messages take long by the sender's own clock too, which over
// RDMA is until the receiver's card has them.
func (s *suspect) onWire() bool {
	return s.Network == "RDMA" && s.messages >= s.needed && s.flight.stands() && s.flight.always && s.send.stands()
}

// accuse names the links that stand out, and the processes that keep others waiting.
// Messages from and to these take long for that reason; but who is at the end of a
// wire that is slow is not the cause.
func (r *Report) accuse(t *model.Trace, links []suspect) {
	var victims []*model.Process
	for _, s := range links {
		if s.onWire() {
			victims = append(victims, s.ends[:]...)
		}
	}
	holders := r.holders(t, victims)
	for _, s := range links {
		r.judge(&s, slices.ContainsFunc(s.ends[:], func(p *model.Process) bool { return slices.Contains(holders, p) }))
	}
}

// compared has, size for size, what messages take on each link beside the median of
// the links.
func compared(links []*Link) (all []suspect) {
	flights, sends := map[int]*likes{}, map[int]*likes{}
	for _, l := range links {
		for size, t := range l.sizes {
			if len(t.flights) >= leastSamples {
				flights[size] = flights[size].with(t.flights)
				sends[size] = sends[size].with(t.sends)
			}
		}
	}
	for _, l := range links {
		size, most := 0, 0 // the size of which it has most
		for s, t := range l.sizes {
			if n := len(t.flights); n >= leastSamples && flights[s].count() >= leastSamples && (n > most || n == most && s > size) {
				size, most = s, n
			}
		}
		if most > 0 {
			of, delayed := l.sizes[size], min(l.delayed(), mostDelayed)
			needed := leastAccused + int(moreByCores*delayed*delayed)
			flight := compare(of.flights, flights[size], delayed)
			flight.always = flight.lasts(of.came)
			all = append(all, suspect{l, most, needed, fmt.Sprintf("%d messages of up to %s", most, Size(1<<size)), flight, compare(of.sends, sends[size], delayed)})
		}
	}
	return all
}

// delayed is for which part of its time a process waited for a core: of the two at l's ends the one that waited longer.
func (l *Link) delayed() (most float64) {
	for _, p := range l.ends {
		most = max(most, p.Delayed(p.Machine.At(p.First), p.Machine.At(p.Last)))
	}
	return most
}

// likes are messages of one size on all links: of each link the median, and how far
// the middle half of them lies apart, which a busy machine makes wide.
type likes struct{ medians, spreads, lows []int64 }

func (l *likes) with(link []int64) *likes {
	if l == nil {
		l = &likes{}
	}
	l.medians = append(l.medians, median(link))
	l.spreads = append(l.spreads, quantile(link, 0.75)-quantile(link, 0.25))
	l.lows = append(l.lows, quantile(link, lowest))
	return l
}

func (l *likes) count() int {
	if l == nil {
		return 0
	}
	return len(l.medians)
}

// comparison is of one link with all.
type comparison struct {
	own, others int64 // ns, at the median
	low         int64 // of the link's fastest messages
	lows        int64 // of those of all, at the median
	spread      int64 // of one link's messages, at the median of links
	links       int
	times       float64
	slow        float64 // from how many times on it is slow
	always      bool    // not only at times, as on a machine that is busy
}

// stands reports whether the link differs from others by more than they do.
func (c comparison) stands() bool {
	return c.times >= c.slow && c.own-c.others >= max(leastSlower, c.spread)
}

// lasts reports whether messages take long in most parts of the time in which there
// were any.
func (c comparison) lasts(came []arrival) bool {
	first := slices.MinFunc(came, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }).at
	last := slices.MaxFunc(came, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }).at
	var parts [pieces][]int64
	for _, a := range came {
		at := (a.at - first) * pieces / (last - first + 1)
		parts[at] = append(parts[at], a.ns)
	}
	some, slow := 0, 0
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		some++
		if m := median(p); float64(m) >= c.slow*float64(c.others) && m-c.others >= leastSlower {
			slow++
		}
	}
	return 4*slow >= 3*some
}

func compare(own []int64, others *likes, delayed float64) comparison {
	c := comparison{own: median(own), others: median(others.medians), spread: median(others.spreads), low: quantile(own, lowest), lows: median(others.lows), links: len(others.medians)}
	power := byCores
	if float64(c.low) < slowTimes*float64(c.lows) {
		power = byCoresAlone
	}
	c.slow = slowTimes * math.Pow(1-delayed, -power)
	if c.others > 0 {
		c.times = float64(c.own) / float64(c.others)
	}
	return c
}

func (c comparison) String() string {
	return fmt.Sprintf("took %v at the median, %.1f times as long as the median of %d links, %v; the fastest tenth at most %v, elsewhere %v",
		time.Duration(c.own), c.times, c.links, time.Duration(c.others), time.Duration(c.low), time.Duration(c.lows))
}

// judge accuses a link only of what the clocks can tell. What they cannot, the
// sender's own may: over RDMA a send is done when the receiver's card has it.
func (r *Report) judge(s *suspect, held bool) {
	l, what, flight, send := s.Link, s.what, s.flight, s.send
	l.Slower = flight.times
	if s.messages < leastAccused || !flight.stands() || !flight.always {
		return
	}
	link := fmt.Sprintf("the link from %s to %s (%s, %s to %s)", l.From, l.To, l.Network, l.FromDevice, l.ToDevice)
	if s.messages < s.needed {
		r.Notes = append(r.Notes, fmt.Sprintf("perhaps %s is slow: %s %v; but where a process at its ends had no core for %.0f%% of the time, %d messages are needed to tell", link, what, flight, 100*l.delayed(), s.needed))
		return
	}
	if held || l.Network == "RDMA" && send.times < send.slow {
		r.Notes = append(r.Notes, fmt.Sprintf("messages on %s %v, because a process at its ends is late with them: by the sender's clock they took %v", link, flight, time.Duration(send.own)))
		return
	}
	certain := !l.Unknown && uint64(flight.own-flight.others) > l.Bound
	bySender := l.Network == "RDMA" && send.stands()
	l.Slow = certain || bySender
	switch {
	case certain:
		r.find("slow-link", link+" is slow", fmt.Sprintf("%s %v; the clocks' error is at most %v%s", what, flight, time.Duration(l.Bound), shortOfCores(l.delayed())))
	case bySender:
		r.find("slow-link", link+" is slow", fmt.Sprintf("%s %v, by the sender's own clock%s", what, send, shortOfCores(l.delayed())))
	case l.Network == "RDMA":
	case l.Unknown:
		r.Notes = append(r.Notes, fmt.Sprintf("perhaps %s is slow: %s %v; but the error of the clocks is not known", link, what, flight))
	default:
		r.Notes = append(r.Notes, fmt.Sprintf("perhaps %s is slow: %s %v; but the clocks may be wrong by %v", link, what, flight, time.Duration(l.Bound)))
	}
}
