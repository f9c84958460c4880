package stall

import (
	"testing"
	"time"
)

// A path that loses packets is told of, and again after a while; one that loses a few is not.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		name           string
		packets, again uint64 // a look
		after          [2]int // lines after 10 s, and 70 s
	}{
		{"none", 1000, 0, [2]int{0, 0}},
		{"few of many", 10_000, 20, [2]int{0, 0}},
		{"few at all", 20, 2, [2]int{0, 0}},
		{"many", 1000, 50, [2]int{1, 3}},
	} {
		x := waiting(1)
		x.asks, x.sends = false, true
		k := newClock(x)
		for i, lines := range c.after {
			for range []int{20, 120}[i] {
				x.packets, x.again = x.packets+c.packets, x.again+c.again
				k.passes(k.pace.every)
			}
			if n := x.Count("WARN loss: 5.0% of the packets to node:1 (eth0 -> eth1) were retransmitted in the last 2s: packet loss on the path from :0 to node:1 [WEFT-137 WEFT-138 WEFT-143]"); n != lines || len(x.Lines()) != n {
				t.Errorf("%s: %d lines, want %d: %q", c.name, n, lines, x.Lines())
			}
		}
	}
	x := waiting(1)
	x.asks, x.sends = false, true
	k := newClock(x)
	for i := range uint64(100) { // bursts
		if x.packets += 1000; i/lossEvery%2 == 0 {
			x.again += 50
		}
		k.passes(k.pace.every)
	}
	if len(x.Lines()) != 0 {
		t.Errorf("bursts: %q", x.Lines())
	}
	k = newClock()
	if k.passes(time.Minute); len(k.loss.lossy) != 0 {
		t.Error("nobody sends")
	}
}
