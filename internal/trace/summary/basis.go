package summary

import (
	"fmt"
	"slices"
	"strings"
)

// Lossy reports whether anything is missing from the figures.
func (r *Report) Lossy() bool {
	return slices.ContainsFunc(r.Processes, func(q Process) bool { return q.Missing() > 0 })
}

// Losses says in a line what is missing from every figure.
func (r *Report) Losses() string {
	var all Process
	losers := 0
	for _, q := range r.Processes {
		if q.Missing() > 0 {
			losers++
		}
		all.Overwritten += q.Overwritten
		all.Refused += q.Refused
		all.Torn += q.Torn
		all.Unread += q.Unread
	}
	if !r.Lossy() {
		return "nothing was lost"
	}
	var kinds []string
	for _, k := range []struct {
		n    uint64
		what string
	}{{all.Overwritten, "overwritten record"}, {all.Refused, "refused event"}, {all.Torn, "torn record"}, {all.Unread, "unread chunk"}} {
		if k.n > 0 {
			kinds = append(kinds, count(int(k.n), k.what))
		}
	}
	if all.Overwritten > 0 {
		kinds[0] = "up to " + kinds[0]
	}
	return fmt.Sprintf("lost by %d of %d processes: %s", losers, len(r.Processes), strings.Join(kinds, ", "))
}

// ClockError says in a line by how much times of different machines may be wrong.
func (r *Report) ClockError() string {
	unknown, worst := 0, uint64(0)
	for _, c := range r.Clocks {
		if !c.Known() {
			unknown++
		}
		worst = max(worst, c.Bound)
	}
	switch machines := len(r.Clocks); {
	case machines < 2:
		return "one machine, one clock"
	case unknown == machines-1:
		return fmt.Sprintf("clocks of %d machines: realtime clocks, whose error is not known", machines)
	case unknown > 0:
		return fmt.Sprintf("clocks of %d machines: wrong by at most %s against the first machine's; of %d of them, on realtime clocks, the error is not known", machines, nanos(int64(worst)), unknown)
	default:
		return fmt.Sprintf("clocks of %d machines: wrong by at most %s against the first machine's", machines, nanos(int64(worst)))
	}
}

// Compared says in a line what the findings are chosen from.
func (r *Report) Compared() string {
	collectives, communicators, links := 0, 0, 0
	for _, c := range r.Communicators {
		if c.Skew != nil {
			collectives += c.Skew.Compared
			communicators++
		}
	}
	for _, l := range r.Links {
		if l.Slower > 0 {
			links++
		}
	}
	return fmt.Sprintf("compared: ranks in %s of %s, messages of %d of %s", count(collectives, "collective"), count(communicators, "communicator"), links, count(len(r.Links), "link"))
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
