package rendezvous

import (
	"testing"
	"time"

	"weft/transport/tcp"
)

// A path loses large packets when what was small has arrived and what is large does not; a path that carries nothing any more is
// no narrow one.
func TestWhatALostPacketSays(t *testing.T) {
	const before = 1 + 64 // bytes: SYN and frame 1
	stuck := tcp.Flow{Acked: before, Under: true, Repeats: guardTries}
	with := func(change func(f *tcp.Flow)) tcp.Flow {
		f := stuck
		change(&f)
		return f
	}
	for _, c := range []struct {
		name  string
		flow  tcp.Flow
		still time.Duration
		loses bool
	}{
		{"the large packet is repeated in vain", stuck, guardLimit, true},
		{"not for long enough", stuck, guardLimit - 1, false},
		{"not often enough", with(func(f *tcp.Flow) { f.Repeats = guardTries - 1 }), guardLimit, false},
		{"the interface does not take it", with(func(f *tcp.Flow) { f.Under, f.Repeats = false, 0 }), guardLimit, true},
		{"the small packet is lost too", with(func(f *tcp.Flow) { f.Acked = 1 }), guardLimit, false},
		{"a part of it is", with(func(f *tcp.Flow) { f.Acked = before - 1 }), guardLimit, false},
	} {
		g := &Guard{before: before, seen: tcp.Stuck{Still: c.still}}
		if got := g.loses(&c.flow); got != c.loses {
			t.Errorf("%s: loses %t", c.name, got)
		}
	}
}
