package collnet

import (
	"fmt"
	"math"
	"slices"
	"time"

	"weft/collnet/choose"
)

// What a rank tells all others, so that everybody computes with the same: how fast its path to the next rank is, and
// which ranks RDMA joins it to.
const (
	probes     = 31
	probeBytes = 1 << 20
	bursts     = 7
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
	return j.tell(latency, probeBytes/max(burst, time.Microsecond).Seconds())
}

// around is how long a message of that size takes, the median of some.
func (j *joining) around(times, size int) (time.Duration, error) {
	took := make([]time.Duration, times)
	for i := range took {
		begin := time.Now()
		if err := j.pass(j.mem.at(0, size), j.mem.at(probeBytes, size)); err != nil {
			return 0, err
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	return took[times/2], nil
}

// pass sends a buffer to the next rank of the ring, while one comes from that before.
func (j *joining) pass(out, in Buffer) error {
	c, t := j.c, j.c.tracks[0]
	next, before := (c.rank+1)%c.n, (c.rank+c.n-1)%c.n
	to, from := t.sends[next], t.receives[before]
	var sent, came bool
	var send, receive uintptr
	return j.until(func() (bool, error) {
		if err := advance(&came, &receive, from, func() (uintptr, error) { return from.Receive(in, helloTag) }); err != nil {
			return false, c.lost("connect", before, from, err)
		}
		if err := advance(&sent, &send, to, func() (uintptr, error) { return to.Send(out, helloTag) }); err != nil {
			return false, c.lost("connect", next, to, err)
		}
		return sent && came, nil
	}, func() string { return fmt.Sprintf("rank %d or rank %d", before, next) })
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

// tell has what each rank knows go around the ring.
func (j *joining) tell(latency time.Duration, bandwidth float64) error {
	c, size := j.c, factsSize(j.c.n)
	place := func(r int) int { return 2*probeBytes + (r+c.n)%c.n*size }
	b := j.mem.bytes[place(c.rank):][:size]
	le.PutUint64(b, uint64(latency))
	le.PutUint64(b[8:], math.Float64bits(bandwidth))
	for r, l := range c.tracks[0].sends {
		if b[16+r] = 0; l != nil && l.Cabled() {
			b[16+r] = 1
		}
	}
	for i := range c.n - 1 {
		if err := j.pass(j.mem.at(place(c.rank-i), size), j.mem.at(place(c.rank-i-1), size)); err != nil {
			return err
		}
	}
	j.conclude(place)
	return nil
}

// conclude computes from what all have told; the median counts. Paths that are all alike are those of a network, and no
// cables between two.
func (j *joining) conclude(place func(rank int) int) {
	c := j.c
	var latencies []time.Duration
	var bandwidths []float64
	f := choose.Fabric{N: c.n, Chunk: int64(c.ctx.Chunk)}
	alike := true
	for r := range c.n {
		b := j.mem.bytes[place(r):]
		latencies = append(latencies, time.Duration(le.Uint64(b)))
		bandwidths = append(bandwidths, math.Float64frombits(le.Uint64(b[8:])))
		row := make([]bool, c.n)
		for o := range c.n {
			row[o] = b[16+o] == 1 && j.mem.bytes[place(o)+16+r] == 1
			alike = alike && (row[o] || o == r)
		}
		f.Cabled = append(f.Cabled, row)
	}
	slices.Sort(latencies)
	slices.Sort(bandwidths)
	c.path = choose.Path{Latency: latencies[c.n/2], Bandwidth: bandwidths[c.n/2]}
	if f.Path = c.path; alike || len(j.peers) < c.n-1 { // of more ranks, not all are known to each other
		f.Cabled = nil
	}
	c.choices = choose.Of(f)
}
