package fastpath_test

import (
	"testing"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
)

// A thread that does nothing but poll sleeps now and then. One that learns something at times does not, nor does one
// that moves data.
func TestRest(t *testing.T) {
	const listen, other, turns = 0x7e57, 0x7e58, 500
	w := fastpath.AcceptWait(listen)
	w.Begin()
	defer w.End()
	for _, c := range []struct {
		what  string
		does  hostcalls.Poller
		rests bool
	}{
		{"nothing comes", hostcalls.Poller{Polls: 256}, true},
		{"something comes of every hundredth poll", hostcalls.Poller{Other: other, Polls: 99}, false},
		{"it moves data", hostcalls.Poller{Polls: 256, Moves: true}, false},
	} {
		c.does.Listen, c.does.Turns = listen, turns
		waits, slept, err := c.does.Run()
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if waits != c.does.Polls*turns {
			t.Errorf("%s: %d of %d polls found nothing", c.what, waits, c.does.Polls*turns)
		}
		// A thread that is kept from the processor for long seems to do other work between its polls, and a page fault
		// may sleep as well.
		if few := turns / 20; slept > few != c.rests {
			t.Errorf("%s: the thread slept %d times in %d turns", c.what, slept, turns)
		}
	}
}
