package rounds

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 4}, 4}, {[]float64{8, 2, 4, 1}, 3}} {
		if got := Median(c.of); got != c.want {
			t.Errorf("Median(%v) = %v, not %v", c.of, got, c.want)
		}
	}
}

// What the processes of the measurement use is no disturbance; what fails ends the rounds.
func TestCalmly(t *testing.T) {
	n := 0
	disturbed, err := Calmly(func() time.Duration { return time.Duration(n) * time.Hour }, func() error { n++; return nil })
	if disturbed || err != nil || n != 1 {
		t.Errorf("disturbed %v after %d rounds, %v", disturbed, n, err)
	}
	why := errors.New("why")
	if _, err := Calmly(func() time.Duration { return 0 }, func() error { return why }); !errors.Is(err, why) {
		t.Errorf("the round failed, Calmly says %v", err)
	}
}

// Cores have a distance, wherever there are two and they can be had; who looks for it is not tied to one afterwards.
func TestDistance(t *testing.T) {
	before, after := unix.CPUSet{}, unix.CPUSet{}
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	two, found := before.Count() > 1, false
	for range 20 {
		d := distance()
		found = found || d > 0
		if d > 0 && !two || d > sampleMost {
			t.Errorf("%v between the cores of %v", d, before)
		}
	}
	if two && !found {
		t.Log("others keep the cores busy")
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || before != after {
		t.Errorf("%v: %v before, %v after", err, before, after)
	}
}

// Who measures waits for cores that were nearer once, but only once in vain: until they are near again.
func TestGather(t *testing.T) {
	const near, far = 60 * time.Nanosecond, 300 * time.Nanosecond
	var c cores
	for i, step := range []struct {
		seen  []time.Duration // one after the other; the last one stays
		wait  time.Duration
		near  bool
		looks int
	}{
		{[]time.Duration{far}, time.Hour, true, 1},            // nothing better is known
		{[]time.Duration{near}, time.Hour, true, 1},           // now it is
		{[]time.Duration{0}, time.Hour, true, 1},              // nothing is known of them
		{[]time.Duration{far, far, near}, time.Hour, true, 3}, // they come back
		{[]time.Duration{far}, 0, false, 1},                   // they do not
		{[]time.Duration{far}, time.Hour, false, 1},           // nobody waits for that again
		{[]time.Duration{2 * near}, time.Hour, true, 1},       // they are near
		{[]time.Duration{far, near}, time.Hour, true, 2},      // and waited for as before
	} {
		looks := 0
		c.wait = step.wait
		c.look = func() time.Duration {
			looks++
			return step.seen[min(looks, len(step.seen))-1]
		}
		if got := c.gather(); got != step.near || looks != step.looks {
			t.Errorf("step %d: near %v after %d looks", i, got, looks)
		}
	}
}

// The ranks are those of the sign test's tables.
func TestInterval(t *testing.T) {
	for n, k := range map[int]int{6: 1, 8: 1, 9: 2, 15: 4, 20: 6, 24: 7, 25: 8, 30: 10, 40: 14, 50: 18} {
		var v []float64
		for _, i := range rand.Perm(n) {
			v = append(v, float64(i+1))
		}
		if low, high := Interval(v); low != float64(k) || high != float64(n+1-k) {
			t.Errorf("of 1 to %d: %v to %v, not %d to %d", n, low, high, k, n+1-k)
		}
	}
	if low, high := Interval([]float64{1, 1, 1, 1, 1}); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("of five: %v to %v", low, high)
	}
}

// What it promises: of samples of a lopsided distribution the median is outside in at most 5 of 100 cases.
func TestIntervalCovers(t *testing.T) {
	draw, outside := rand.New(rand.NewPCG(1, 2)), 0
	const trials = 4000
	for range trials {
		var v []float64
		for range 25 {
			v = append(v, draw.ExpFloat64())
		}
		if low, high := Interval(v); low > math.Ln2 || high < math.Ln2 {
			outside++
		}
	}
	if outside > trials*5/100 || outside < trials*2/100 {
		t.Errorf("outside in %d of %d", outside, trials)
	}
}
