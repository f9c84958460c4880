package summary

import "testing"

// Of a link on starved cores, a message that is as fast as elsewhere speaks for the cores.
func TestFastestMessagesOnBusyCores(t *testing.T) {
	for _, c := range []struct {
		fastest, most int64 // us; elsewhere 20 and 100
		delayed       float64
		slow          bool
	}{
		{20, 160, 0, true}, {40, 160, 0, true}, {20, 460, 0.71, false}, {40, 460, 0.71, true}, {20, 800, 0.71, true}, {40, 800, 0.95, false},
	} {
		own, other := link(c.fastest, c.most), link(20, 100)
		var of *likes
		for _, l := range [][]int64{own, other, other} {
			of = of.with(l)
		}
		if got := compare(own, of, c.delayed).stands(); got != c.slow {
			t.Errorf("%+v: slow %v", c, got)
		}
	}
}

// link is messages of which a fifth takes as long as the fastest, in us, and the others as long as most.
func link(fastest, most int64) (ns []int64) {
	for i := range 100 {
		took := most
		if i < 20 {
			took = fastest
		}
		ns = append(ns, 1000*took)
	}
	return ns
}
