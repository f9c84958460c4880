package metrics

import (
	"time"

	"weft/transport/meter/format"
)

// Counts are what one end of connections has counted. They only grow.
type Counts struct {
	Messages  uint64
	Bytes     uint64
	Failed    uint64 // messages
	Time      uint64 // ns, sum over messages
	Waits     uint64 // sends that found no receive
	Waited    uint64 // ns in which they did not
	Closed    uint64 // connections
	Broken    uint64 // of those, the ones that failed before
	LaneBytes [format.Lanes]uint64
	Buckets   [format.Buckets]uint64 // messages by their time
}

// words are all of them.
func (c *Counts) words() []*uint64 {
	all := []*uint64{&c.Messages, &c.Bytes, &c.Failed, &c.Time, &c.Waits, &c.Waited, &c.Closed, &c.Broken}
	for i := range c.LaneBytes {
		all = append(all, &c.LaneBytes[i])
	}
	for i := range c.Buckets {
		all = append(all, &c.Buckets[i])
	}
	return all
}

// Add adds what another has counted.
func (c *Counts) Add(o *Counts) {
	theirs := o.words()
	for i, w := range c.words() {
		*w += *theirs[i]
	}
}

// Since is what was counted after before. What would have fallen, as in a damaged
// file, is zero.
func (c *Counts) Since(before *Counts) Counts {
	d := *c
	earlier := before.words()
	for i, w := range d.words() {
		*w -= min(*w, *earlier[i])
	}
	return d
}

// Timed are the messages whose time is known.
func (c *Counts) Timed() uint64 {
	n := uint64(0)
	for _, b := range c.Buckets {
		n += b
	}
	return n
}

// Below are the timed messages that took less than ns, which begins a bucket.
func (c *Counts) Below(ns uint64) uint64 {
	n := uint64(0)
	for _, b := range c.Buckets[:format.Bucket(ns)] {
		n += b
	}
	return n
}

// Quantile is the time that a part q of the messages did not exceed, to an eighth:
// the middle of its bucket. 0: there are none.
func (c *Counts) Quantile(q float64) time.Duration {
	timed := c.Timed()
	if timed == 0 {
		return 0
	}
	left := min(uint64(q*float64(timed)), timed-1)
	for i, n := range c.Buckets {
		if left < n {
			if i+1 == format.Buckets {
				return time.Duration(format.Begin(i))
			}
			return time.Duration((format.Begin(i) + format.Begin(i+1)) / 2)
		}
		left -= n
	}
	return 0 // not reached: left is less than all
}
