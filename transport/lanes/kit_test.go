package lanes_test

import (
	"testing"

	"weft/internal/knob"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/route"
)

// What a connection needs to be the like of one whose lanes serve again.
func TestKitSuits(t *testing.T) {
	dev := &device.Device{}
	moved := pair(1, 1)
	moved.PeerGID = roce(1, 200)
	movedFirst := pair(0, 0)
	movedFirst.PeerGID = roce(0, 200)
	type want struct {
		dev    *device.Device
		pairs  []route.Pair
		at     []int
		tuning route.Tuning
		sl, tc uint8
	}
	like := want{dev, []route.Pair{pair(0, 0), pair(1, 1)}, []int{0, 1}, route.Tuning{Inline: 64}, 3, 96}
	for _, c := range []struct {
		name   string
		lanes  int // of the kit, whose connection was to have two
		change func(*want)
		suits  bool
	}{
		{"its like", 2, func(*want) {}, true},
		{"its like, which grows", 1, func(*want) {}, true},
		{"another device", 2, func(w *want) { w.dev = &device.Device{} }, false},
		{"another service level", 2, func(w *want) { w.sl = 4 }, false},
		{"another traffic class", 2, func(w *want) { w.tc = 0 }, false},
		{"inline data of another size", 2, func(w *want) { w.tuning.Inline = 0 }, false},
		{"receives in any order", 2, func(w *want) { w.tuning.AnyOrder = true }, false},
		{"fewer lanes", 2, func(w *want) { w.at = w.at[:1] }, false},
		{"as few lanes as it has, where more were meant", 1, func(w *want) { w.at = w.at[:1] }, true},
		{"more lanes than were meant", 2, func(w *want) { w.at = []int{0, 1, 0, 1} }, false},
		{"further lanes elsewhere", 1, func(w *want) { w.at = []int{0, 0} }, false},
		{"other ports first", 2, func(w *want) { w.at = []int{1, 0} }, false},
		{"the same pairs by other numbers", 2, func(w *want) { w.pairs, w.at = []route.Pair{pair(1, 1), pair(0, 0)}, []int{1, 0} }, true},
		{"a peer's port with another address", 2, func(w *want) { w.pairs = []route.Pair{pair(0, 0), moved} }, false},
		{"one lane, to a port with another address", 1, func(w *want) { w.pairs, w.at = []route.Pair{movedFirst}, []int{0} }, false},
		{"a later port with another address", 1, func(w *want) { w.pairs = []route.Pair{pair(0, 0), moved} }, false},
	} {
		k := lanes.NewKit(like.dev, like.pairs, like.at, c.lanes, like.tuning, like.sl, like.tc)
		w := like
		c.change(&w)
		if suits := k.Suits(w.dev, w.pairs, w.at, w.tuning, w.sl, w.tc); suits != c.suits {
			t.Errorf("%s: %v", c.name, suits)
		}
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		env               map[string]string
		flushes, striping string
	}{
		{nil, "", "measured"},
		{map[string]string{"NCCL_GDR_FLUSH_DISABLE": "1"}, "never", "measured"},
		{map[string]string{"NCCL_GDR_FLUSH_DISABLE": "1", "WEFT_FLUSH": "always"}, "always", "measured"},
		{map[string]string{"WEFT_STRIPING": "even"}, "", "even"},
	} {
		k := knob.Parse(c.env)
		if f, s := lanes.Flushing(k), lanes.Striping(k); f != c.flushes || s != c.striping {
			t.Errorf("%v: flushes %q, striping %q; want %q, %q", c.env, f, s, c.flushes, c.striping)
		}
	}
}
