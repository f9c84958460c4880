package stall

import (
	"testing"
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

func TestJudge(t *testing.T) {
	type look = fastpath.Look
	for _, c := range []struct {
		name    string
		sends   bool
		was, is look
		state   state
		why     uint8
	}{
		{"nothing was ever asked of it", true, look{Group: 1, Next: 1}, look{Group: 1, Next: 1}, idle, wire.WaitNone},
		{"all that was asked is over", false, look{Begun: 9, Done: 9, Group: 10, Next: 10, Rounds: 5}, look{Begun: 9, Done: 9, Group: 10, Next: 10, Rounds: 5}, idle, wire.WaitNone},
		{"a flush, which is no receive", false, look{Begun: 9, Outstanding: 1, Unsent: 1, Rounds: 5}, look{Begun: 9, Outstanding: 1, Unsent: 1, Rounds: 6}, idle, wire.WaitNone},
		{"a receive came", false, look{Begun: 2, Outstanding: 1, Incomplete: 1, Group: 2, Next: 3}, look{Begun: 2, Done: 1, Group: 3, Next: 3}, moves, wire.WaitNone},
		{"a receive was posted", false, look{Begun: 2, Group: 2, Next: 2}, look{Begun: 3, Outstanding: 1, Incomplete: 1, Group: 2, Next: 3}, moves, wire.WaitNone},
		{"a receive waits", false, look{Begun: 3, Outstanding: 1, Incomplete: 1, Rounds: 4}, look{Begun: 3, Outstanding: 1, Incomplete: 1, Rounds: 9}, waits, wire.WaitSend},
		{"nobody asks for it", false, look{Begun: 3, Outstanding: 1, Incomplete: 1, Rounds: 4}, look{Begun: 3, Outstanding: 1, Incomplete: 1, Rounds: 4}, rests, wire.WaitSend},
		{"a part of it has come", false, look{Incomplete: 1, Outstanding: 1}, look{Incomplete: 1, Outstanding: 1, Parts: 1, Rounds: 1}, moves, wire.WaitNone},
		{"and no more comes", false, look{Incomplete: 1, Outstanding: 1, Parts: 1}, look{Incomplete: 1, Outstanding: 1, Parts: 1, Rounds: 1}, waits, wire.WaitPath},
		{"a send finds no receive", true, look{Group: 3, Next: 3, Vain: 10}, look{Group: 3, Next: 3, Vain: 99}, waits, wire.WaitReceive},
		{"it found none once", true, look{Group: 3, Next: 3, Vain: 10}, look{Group: 3, Next: 3, Vain: 10}, idle, wire.WaitNone},
		{"it has found one", true, look{Group: 3, Next: 3, Vain: 10}, look{Group: 4, Next: 4, Vain: 12, Begun: 1, Outstanding: 1, Unsent: 1}, moves, wire.WaitNone},
		{"a send is not acknowledged", true, look{Outstanding: 1, Unsent: 1, Vain: 10}, look{Outstanding: 1, Unsent: 1, Vain: 10, Rounds: 7}, waits, wire.WaitPath},
		{"nor asked for", true, look{Outstanding: 1, Unsent: 1}, look{Outstanding: 1, Unsent: 1}, rests, wire.WaitPath},
		{"it is done, and not asked for", true, look{Outstanding: 1, Done: 1}, look{Outstanding: 1, Done: 1}, rests, wire.WaitReceive},
		{"its group lacks a receive", true, look{Outstanding: 1, Vain: 3}, look{Outstanding: 1, Vain: 8, Ready: true}, waits, wire.WaitReceive},
	} {
		if s, why := judge(c.sends, &c.was, &c.is); s != c.state || why != c.why {
			t.Errorf("%s: state %d for %d, want %d for %d", c.name, s, why, c.state, c.why)
		}
	}
}

// TestSaw has looks follow one another: what each adds to a wait.
func TestSaw(t *testing.T) {
	const every = time.Second / 2
	waiting := func(rounds uint32) fastpath.Look {
		return fastpath.Look{Begun: 3, Outstanding: 1, Incomplete: 1, Rounds: rounds}
	}
	moved := uint64(100)
	progress := func() uint64 { return moved }
	x := &seen{look: waiting(0)}
	see := func(what string, look fastpath.Look, want time.Duration) {
		t.Helper()
		if x.saw(false, look, every, progress); x.waited != want {
			t.Errorf("%s: %v, want %v", what, x.waited, want)
		}
	}
	see("where its carrier stands was not known", waiting(1), 0)
	see("a look", waiting(2), every)
	see("another", waiting(3), 2*every)
	see("the host, which has no processor, does not ask", waiting(3), 2*every)
	see("it asks again", waiting(4), 3*every)
	moved++
	see("a piece of a slow message", waiting(5), 0)
	see("and none", waiting(6), every)
	for range restMost {
		see("the host has given it up, or is about to ask", waiting(6), every)
	}
	see("it has given it up", waiting(6), 0)
	see("it asks after all", waiting(7), every)
	see("it has come", fastpath.Look{Begun: 3, Done: 1, Rounds: 8}, 0)
	if x.state != moves {
		t.Errorf("state %d", x.state)
	}
	see("nothing is asked for", fastpath.Look{Begun: 3, Done: 1, Rounds: 8}, 0)
	if x.state != idle {
		t.Errorf("state %d", x.state)
	}
}
