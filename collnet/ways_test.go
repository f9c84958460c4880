package collnet

import (
	"testing"

	"weft/collnet/schedule"
)

// What is remembered of operations has an end, and what is forgotten is found again.
func TestWays(t *testing.T) {
	w, all := inMemory(t, 3, 4<<10)
	c := all[0]
	c.pass.Lock()
	op := func(count int64) schedule.Op {
		return schedule.Op{Kind: schedule.AllReduce, N: 3, Count: count, Elem: 4, Acc: 4}
	}
	small, large := c.way(op(1000)), c.way(op(100_000))
	if c.way(op(1000)) != small {
		t.Error("a way was forgotten")
	}
	if a, _ := small.plan(op(1000), 0); len(small.chunks) > mostPlans {
		t.Fatalf("%d chunks", len(small.chunks))
	} else if b, _ := small.plan(op(1000), 0); a != b {
		t.Error("a plan was forgotten")
	}
	if large.plans != nil || len(large.chunks) <= mostPlans {
		t.Errorf("%d plans are kept of %d chunks", len(large.plans), len(large.chunks))
	}
	if _, err := large.plan(op(100_000), len(large.chunks)-1); err != nil {
		t.Error(err)
	}
	for count := range int64(3 * mostWays) {
		c.way(op(count + 1))
		if len(c.ways) > mostWays {
			t.Fatalf("%d ways are remembered", len(c.ways))
		}
	}
	if again := c.way(op(1000)); again.algorithm != small.algorithm || len(again.chunks) != len(small.chunks) {
		t.Errorf("%v, was %v", again, small)
	}
	if none := c.way(schedule.Op{Kind: schedule.AllGather, N: 3, Elem: 1, Acc: 1}); len(none.chunks) != 0 {
		t.Errorf("nothing has %d chunks", len(none.chunks))
	}
	c.pass.Unlock()
	w.end(t, all)
}
