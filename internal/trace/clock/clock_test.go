package clock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/trace/clock"
)

// Three machines on a line whose clocks are 0, +1000 and -300 against the first;
// a message takes 10 there and 30 back.
func TestAlign(t *testing.T) {
	ahead := []uint64{0, 1000, 1<<64 - 300}
	c := clock.New(make([]clock.Machine, 3))
	send := func(from, to int, at, takes uint64) { c.Message(from, to, at+ahead[from], at+takes+ahead[to]) }
	send(0, 1, 5000, 10)
	send(0, 1, 6000, 90)
	send(1, 0, 7000, 30)
	send(1, 0, 8000, 500)
	send(1, 2, 5000, 4)
	send(2, 1, 5000, 4)
	send(2, 0, 5000, 2000) // one way: no interval
	send(1, 1, 5000, 0)
	want := []clock.Offset{
		{Basis: clock.Reference},
		{Add: -990, Bound: 20, Basis: clock.Messages},
		{Add: 310, Bound: 24, Basis: clock.Messages, Via: 1},
	}
	if d := cmp.Diff(want, c.Align()); d != "" {
		t.Error(d)
	}
}

func TestNoMessagesBothWays(t *testing.T) {
	c := clock.New([]clock.Machine{{Mono: 100, Real: 5100}, {Mono: 700, Real: 5200}, {Mono: 50, Real: 5300}})
	c.Message(0, 1, 1, 2)
	c.Message(1, 2, 600, 10)
	c.Message(2, 1, 10, 630)
	want := []clock.Offset{
		{Basis: clock.Reference},
		{Add: -500, Basis: clock.Wall},
		{Add: 105, Bound: 15, Basis: clock.Wall, Via: 1},
	}
	if d := cmp.Diff(want, c.Align()); d != "" {
		t.Error(d)
	}
}

// Where one clock runs faster, messages of different times contradict each other.
func TestCrossed(t *testing.T) {
	c := clock.New(make([]clock.Machine, 2))
	c.Message(0, 1, 1000, 1005)
	c.Message(1, 0, 1000, 1005)
	c.Message(0, 1, 90000, 89950)
	want := []clock.Offset{{Basis: clock.Reference}, {Add: 28, Bound: 23, Basis: clock.Messages, Crossed: 45}}
	if d := cmp.Diff(want, c.Align()); d != "" {
		t.Error(d)
	}
}
