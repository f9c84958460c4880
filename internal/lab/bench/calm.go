package main

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A machine without CPUs of its own does not learn who else ran on them. A loop of known length on every core, before and
// after each measurement, tells: where it takes longer than it once did, the measurement does not count if there are others.
const (
	spinSteps = 10_000_000
	tolerated = 1.3
)

type calm struct {
	best time.Duration // that the loop ever took
}

func newCalm() *calm {
	c := &calm{best: time.Hour}
	for range 5 {
		c.disturbed()
	}
	return c
}

// run measures, and tells whether others took CPUs before or after.
func (c *calm) run(measure func() error) (disturbed bool, err error) {
	before := c.disturbed()
	err = measure()
	return c.disturbed() || before, err
}

// disturbed runs the loop on all cores at once.
func (c *calm) disturbed() bool {
	took := make([]time.Duration, runtime.NumCPU())
	var wg sync.WaitGroup
	for cpu := range took {
		wg.Go(func() {
			runtime.LockOSThread() // for good: the thread, which is bound to a core, ends with the goroutine
			var set unix.CPUSet
			set.Set(cpu)
			unix.SchedSetaffinity(0, &set)
			took[cpu] = spin()
		})
	}
	wg.Wait()
	slowest := time.Duration(0)
	for _, t := range took {
		c.best, slowest = min(c.best, t), max(slowest, t)
	}
	return float64(slowest) > tolerated*float64(c.best)
}

func spin() time.Duration {
	begin, x := time.Now(), uint64(1)
	for range spinSteps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	took := time.Since(begin)
	runtime.KeepAlive(x)
	return took
}
