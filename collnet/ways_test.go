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
	if large.plans != nil || len(large.chunks) <= mostPlans || c.ways[op(100_000)] != nil {
		t.Errorf("an operation of %d chunks is remembered, with %d plans", len(large.chunks), len(large.plans))
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
	*c.parts = mostParts // as if plans of a thousand ranks were kept
	full := c.ways[op(3*mostWays)]
	if a, _ := full.plan(op(3*mostWays), 0); full.plans[0] != nil || a == nil {
		t.Error("a plan is kept for which there is no room")
	}
	if again := c.way(op(1)); len(c.ways) != 1 || *c.parts != 0 {
		t.Errorf("%d ways with plans of %d parts are left", len(c.ways), *c.parts)
	} else if p, _ := again.plan(op(1), 0); *c.parts != p.Parts() || p.Parts() < 2 {
		t.Errorf("plans of %d parts are kept, not of %d", *c.parts, p.Parts())
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
