package fastpath

import (
	"slices"
	"testing"
)

// marked are the lanes of turns, those that are timed plus wfLanes.
func marked(order []wfTurn) (lanes []uint32) {
	for _, turn := range order {
		lanes = append(lanes, turn.lane+turn.timed*wfLanes)
	}
	return lanes
}

// Every lane comes as often as its weight says and at least once, where it is
// timed first, and no lane has to wait much longer than its part.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		weights []uint32
		want    []uint32 // its beginning
	}{
		{[]uint32{7}, []uint32{0}},
		{[]uint32{3, 3, 3}, []uint32{32, 33, 34, 0, 1, 2, 0, 1, 2}},
		{[]uint32{4, 1}, []uint32{32, 0, 33, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}},
		{[]uint32{1, MaxWeight}, []uint32{33, 1, 1, 1}},
		{slices.Repeat([]uint32{1}, wfLanes), nil},
		{append(slices.Repeat([]uint32{1}, wfLanes-1), MaxWeight), nil},
	} {
		timed, plain := marked(turns(c.weights, true)), marked(turns(c.weights, false))
		if len(timed) > wfOrder || len(plain) != len(timed) || !slices.Equal(timed[:len(c.want)], c.want) {
			t.Errorf("%v: %d and %d places, %v", c.weights, len(timed), len(plain), timed)
		}
		sum, places, times := 0, float64(wfOrder-wfLanes), make([]int, len(c.weights))
		if len(c.weights) == 1 {
			places = 1
		}
		for _, w := range c.weights {
			sum += int(w)
		}
		for i, place := range timed {
			lane := place % wfLanes
			if first := times[lane] == 0 && len(c.weights) > 1; plain[i] != lane || (place != lane) != first {
				t.Errorf("%v: place %d is %d and %d", c.weights, i, place, plain[i])
			}
			times[lane]++
		}
		for lane, w := range c.weights {
			if exact := float64(w) / float64(sum) * places; times[lane] < 1 || float64(times[lane]) > exact+1 || float64(times[lane]) < exact-1 {
				t.Errorf("%v: lane %d comes %d times in %d, %.1f is its part", c.weights, lane, times[lane], len(timed), exact)
			}
			gap, longest := 0, 0
			for _, place := range append(plain, plain...) {
				if gap++; place == uint32(lane) {
					gap, longest = 0, max(longest, gap)
				}
			}
			if longest > 2*len(plain)/times[lane]+len(c.weights) {
				t.Errorf("%v: lane %d waits for %d others", c.weights, lane, longest)
			}
		}
	}
}
