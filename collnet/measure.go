package collnet

import (
	"fmt"
	"slices"
	"time"

	"weft/collnet/choose"
)

// How a path is measured.
const (
	probes     = 31
	smallProbe = 8
	probeBytes = 1 << 20
	bursts     = 7
	assumedGap = time.Microsecond // of two ranks, where there is no further message
)

// measure has all ranks send to the next one around the ring, at the same time, and tells what each has seen.
func (j *joining) measure() error {
	j.measures = true
	small := j.mem.at(0, smallProbe)
	latency, err := fastQuarter(probes, func() error { return j.rotate(small, j.mem.at(probeBytes, smallProbe)) })
	if err != nil {
		return err
	}
	burst, err := fastQuarter(bursts, func() error { return j.rotate(j.mem.at(0, probeBytes), j.mem.at(probeBytes, probeBytes)) })
	if err != nil {
		return err
	}
	all, err := fastQuarter(probes, func() error {
		return j.exchange(small, j.peers, j.peers, func(i int) Buffer { return j.mem.at(probeBytes+i*smallProbe, smallProbe) })
	})
	if err != nil {
		return err
	}
	gap := assumedGap
	if further := len(j.peers) - 1; further > 0 {
		gap = max(all-latency, 0) / time.Duration(further)
	}
	return j.tell(choose.Path{Latency: latency, Gap: gap, Bandwidth: probeBytes / max(burst, time.Microsecond).Seconds()})
}

// fastQuarter is how long something takes in the slowest of the fastest quarter of its runs: while communicators begin, other
// threads of the host have its cores at times.
func fastQuarter(times int, do func() error) (time.Duration, error) {
	took := make([]time.Duration, times)
	for i := range took {
		begin := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	return took[times/4], nil
}

// rotate sends a buffer to the next rank of the ring, while one comes from that before.
func (j *joining) rotate(out, in Buffer) error {
	next, before := (j.c.rank+1)%j.c.n, (j.c.rank+j.c.n-1)%j.c.n
	return j.exchange(out, []int{next}, []int{before}, func(int) Buffer { return in })
}

// exchange sends a buffer to some ranks, while others send theirs; in is where that of the i-th of them goes.
func (j *joining) exchange(out Buffer, to, from []int, in func(i int) Buffer) error {
	c, t := j.c, j.c.tracks[0]
	came, sent := make([]bool, len(from)), make([]bool, len(to))
	receives, sends := make([]uintptr, len(from)), make([]uintptr, len(to))
	return j.until(func() (bool, error) {
		for i, r := range from {
			l := t.receives[r]
			if err := advance(&came[i], &receives[i], l, func() (uintptr, error) { return l.Receive(in(i), helloTag) }); err != nil {
				return false, c.lost("connect", r, l, err)
			}
		}
		for i, r := range to {
			l := t.sends[r]
			if err := advance(&sent[i], &sends[i], l, func() (uintptr, error) { return l.Send(out, helloTag) }); err != nil {
				return false, c.lost("connect", r, l, err)
			}
		}
		return !slices.Contains(came, false) && !slices.Contains(sent, false), nil
	}, func() string { return fmt.Sprintf("rank %d or rank %d", pick(from, came), pick(to, sent)) })
}

// pick is the first of the ranks whose message is not done, or the last.
func pick(ranks []int, done []bool) int {
	i := slices.Index(done, false)
	if i < 0 {
		i = len(ranks) - 1
	}
	return ranks[i]
}

// advance posts a message, and tests it then.
func advance(done *bool, request *uintptr, l Link, post func() (uintptr, error)) (err error) {
	switch {
	case *done:
	case *request == 0:
		*request, err = post()
	default:
		*done, _, err = l.Test(*request)
	}
	return err
}

// tell has what each rank knows go around the ring, and computes from that.
func (j *joining) tell(p choose.Path) error {
	c, size := j.c, factsSize(j.c.n)
	place := func(r int) int { return 2*probeBytes + (r+c.n)%c.n*size }
	mine := facts{path: p, cabled: make([]bool, c.n)}
	for r, l := range c.tracks[0].sends {
		mine.cabled[r] = l != nil && l.Cabled()
	}
	mine.put(j.mem.bytes[place(c.rank):])
	for i := range c.n - 1 {
		if err := j.rotate(j.mem.at(place(c.rank-i), size), j.mem.at(place(c.rank-i-1), size)); err != nil {
			return err
		}
	}
	all := make([]facts, c.n)
	for r := range all {
		all[r] = readFacts(j.mem.bytes[place(r):], c.n)
	}
	f := fabricOf(all, len(j.peers) == c.n-1)
	f.Chunk = int64(c.ctx.Chunk)
	c.path, c.choices = f.Path, choose.Of(f)
	c.ctx.learn(f)
	return nil
}
