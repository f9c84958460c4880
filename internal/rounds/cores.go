package rounds

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A hypervisor moves the virtual cores of a machine about. While they share a cache, a line goes from one to the other and back
// in some 50 to 70 ns; while they do not, in 300, and then whatever passes between two processes goes at less than half its rate,
// for seconds to minutes: measured on a machine of two cores, where NCCL's sockets carry messages of 128 KiB at 4.0 GB/s in the
// one state and at 1.7 in the other. A figure of the one does not compare with a figure of the other.
const (
	crossings  = 100 // of a line in one sample
	samples    = 40
	coresMost  = 4                // whose pairs are looked at
	together   = 30 * time.Second // for cores that are apart to come back
	lookEvery  = 100 * time.Millisecond
	apartFrom  = 2                      // times the least distance that was seen
	sampleMost = 100 * time.Millisecond // for one pair, whose cores others may keep busy
)

// cores are those of the machine.
type cores struct {
	look func() time.Duration // how far they are apart; 0: not known
	wait time.Duration        // for them to come together

	mu    sync.Mutex
	least time.Duration // that was seen
	vain  bool          // it was waited for in vain: nobody waits again until they are there by themselves
}

var machine = cores{look: distance, wait: together}

// apart tells whether they are farther from one another now than they have been.
func (c *cores) apart() bool {
	d := c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d > 0 && (c.least == 0 || d < c.least) {
		c.least = d
	}
	return d > apartFrom*c.least
}

// gather waits until they are near one another, within limits, and tells whether they are.
func (c *cores) gather() bool {
	for first := time.Now(); ; time.Sleep(lookEvery) {
		apart := c.apart()
		c.mu.Lock()
		c.vain = apart && (c.vain || time.Since(first) >= c.wait)
		vain := c.vain
		c.mu.Unlock()
		if !apart || vain {
			return !apart
		}
	}
}

// distance is how long a line takes between two cores and back, of the pair that is farthest apart; 0 with one core, or where a pair
// could not be had.
func distance() (most time.Duration) {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return 0
	}
	var some []int
	for c := 0; c < len(allowed)*64 && len(some) < coresMost; c++ {
		if allowed.IsSet(c) {
			some = append(some, c)
		}
	}
	for i, a := range some {
		for _, b := range some[:i] {
			d := between(a, b)
			if d == 0 {
				return 0
			}
			most = max(most, d)
		}
	}
	return most
}

// between is the median of the samples; 0 where the cores could not be had in time.
func between(a, b int) time.Duration {
	var line struct {
		_    [128]byte
		turn atomic.Int64 // odd: for b
		_    [128]byte
	}
	var took []time.Duration
	until := time.Now().Add(sampleMost)
	var stop atomic.Bool
	await := func(turn int64) bool {
		for n := 0; line.turn.Load() != turn; n++ {
			if n&1023 == 1023 && (stop.Load() || time.Now().After(until)) {
				stop.Store(true)
				return false
			}
		}
		return true
	}
	var both sync.WaitGroup
	both.Go(func() {
		if !onCore(b) {
			stop.Store(true)
			return
		}
		for i := int64(0); i < samples*crossings && await(2*i+1); i++ {
			line.turn.Store(2*i + 2)
		}
	})
	both.Go(func() {
		if !onCore(a) {
			stop.Store(true)
			return
		}
		for i := int64(0); i < samples*crossings; {
			begin := time.Now()
			for range crossings {
				line.turn.Store(2*i + 1)
				if i++; !await(2 * i) {
					return
				}
			}
			took = append(took, time.Since(begin)/crossings)
		}
	})
	both.Wait()
	if len(took) < samples/2 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// onCore ties the goroutine to a core until it ends, and its thread with it; false: it may not.
func onCore(c int) bool {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(c)
	return unix.SchedSetaffinity(0, &one) == nil
}
