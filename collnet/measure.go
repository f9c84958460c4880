package collnet

import (
	"math"
	"slices"
	"time"
)

// What a rank tells all others, so that everybody computes with the same: how fast its path to the next rank is, and
// which ranks RDMA joins it to.
const (
	probes     = 16
	probeBytes = 256 << 10
	bursts     = 4
)

func factsSize(n int) int { return 16 + (n+7)/8*8 }

// measure has all ranks send to the next one around the ring, at the same time, and tells what each has seen.
func (j *joining) measure() error {
	latency, err := j.around(probes, 8)
	if err != nil {
		return err
	}
	burst, err := j.around(bursts, probeBytes)
	if err != nil {
		return err
	}
	bandwidth := probeBytes / max(burst-latency, time.Microsecond).Seconds()
	return j.tell(latency, bandwidth)
}

// around is how long a message of that size takes, on average over some.
func (j *joining) around(times, size int) (time.Duration, error) {
	c := j.c
	next, before := (c.rank+1)%c.n, (c.rank+c.n-1)%c.n
	begin := time.Now()
	for range times {
		if err := j.exchange(map[int]Buffer{next: j.mem.at(0, size)}, map[int]Buffer{before: j.mem.at(probeBytes, size)}); err != nil {
			return 0, err
		}
	}
	return time.Since(begin) / time.Duration(times), nil
}

// tell exchanges what each rank knows; the median counts.
func (j *joining) tell(latency time.Duration, bandwidth float64) error {
	c, size := j.c, factsSize(j.c.n)
	place := func(r int) int { return 2*probeBytes + r*size }
	b := j.mem.bytes[place(c.rank):][:size]
	le.PutUint64(b, uint64(latency))
	le.PutUint64(b[8:], math.Float64bits(bandwidth))
	for r, l := range c.tracks[0].sends {
		if b[16+r] = 0; l != nil && l.Cabled() {
			b[16+r] = 1
		}
	}
	out, in := map[int]Buffer{}, map[int]Buffer{}
	for r := range c.n {
		if r != c.rank {
			out[r], in[r] = j.mem.at(place(c.rank), size), j.mem.at(place(r), size)
		}
	}
	if err := j.exchange(out, in); err != nil {
		return err
	}
	var latencies []time.Duration
	var bandwidths []float64
	for r := range c.n {
		b := j.mem.bytes[place(r):][:size]
		latencies = append(latencies, time.Duration(le.Uint64(b)))
		bandwidths = append(bandwidths, math.Float64frombits(le.Uint64(b[8:])))
		row := make([]bool, c.n)
		for o := range c.n { // both must say so
			row[o] = b[16+o] == 1 && j.mem.bytes[place(o)+16+r] == 1
		}
		c.fabric.Cabled = append(c.fabric.Cabled, row)
	}
	slices.Sort(latencies)
	slices.Sort(bandwidths)
	c.fabric.Path = Path{Latency: latencies[c.n/2], Bandwidth: bandwidths[c.n/2]}
	return nil
}
