package summary

import (
	"cmp"
	"slices"
)

// Pair is what one process sends another, over all their devices.
type Pair struct {
	From      int     `json:"from"` // of Report's processes
	To        int     `json:"to"`
	Messages  int     `json:"messages"`
	Unmatched int     `json:"unmatched"`
	Bytes     uint64  `json:"bytes"`
	P50       int64   `json:"p50"` // as a link's
	P99       int64   `json:"p99"`
	Bandwidth float64 `json:"bandwidth"` // GB/s while messages were under way; 0: not known
	Bound     uint64  `json:"bound"`     // of the clocks' error
	Unknown   bool    `json:"bound_unknown"`
	Slower    float64 `json:"slower"` // of its slowest link
	Slow      bool    `json:"slow"`   // that is a finding
}

// pairs joins links; the slowest are the first.
func (r *Report) pairs(links []*Link) {
	type key struct{ from, to int }
	type pair struct {
		Pair
		flights []int64
		under   []span
	}
	all := map[key]*pair{}
	var order []*pair
	for _, l := range links {
		k := key{l.FromProcess, l.ToProcess}
		p := all[k]
		if p == nil {
			p = &pair{Pair: Pair{From: k.from, To: k.to, Bound: l.Bound, Unknown: l.Unknown}}
			all[k] = p
			order = append(order, p)
		}
		p.Messages += l.Messages
		p.Unmatched += l.Unmatched
		p.Bytes += l.Bytes
		p.Slower = max(p.Slower, l.Slower)
		p.Slow = p.Slow || l.Slow
		p.under = append(p.under, l.under...)
		for _, t := range l.sizes {
			p.flights = append(p.flights, t.flights...)
		}
	}
	r.Pairs = []Pair{}
	for _, p := range order {
		p.P50, p.P99, p.Bandwidth = median(p.flights), quantile(p.flights, 0.99), bandwidth(p.Bytes, p.under)
		r.Pairs = append(r.Pairs, p.Pair)
	}
	slices.SortStableFunc(r.Pairs, func(a, b Pair) int { return cmp.Or(cmp.Compare(b.Slower, a.Slower), cmp.Compare(b.P50, a.P50)) })
}

// span is when a message was under way, ns.
type span struct{ from, to int64 }

// bandwidth is of bytes over the time in which any of their messages was under way,
// in GB/s; 0 where the clocks leave none. It sorts the spans.
func bandwidth(bytes uint64, under []span) float64 {
	busy := length(under)
	if busy == 0 {
		return 0
	}
	return float64(bytes) / float64(busy)
}

// length is of all that spans cover, which it sorts.
func length(spans []span) (covered int64) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	until := int64(0)
	for i, s := range spans {
		if i == 0 {
			until = s.from
		}
		if s.to > until {
			covered += s.to - max(s.from, until)
			until = s.to
		}
	}
	return covered
}
