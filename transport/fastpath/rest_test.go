package fastpath_test

import (
	"runtime"
	"testing"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
)

// A thread that does nothing but poll sleeps now and then; one that learns something at times does not.
func TestRest(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const listen, other, turns = 0x7e57, 0x7e58, 2000
	w := fastpath.AcceptWait(listen)
	w.Begin()
	defer w.End()
	for _, c := range []struct {
		what  string
		polls int
		news  bool // something comes of a poll before them
		rests bool
	}{
		{"nothing comes", 1000, false, true},
		{"something comes of every hundredth", 99, true, false},
	} {
		rests := 0
		for range turns { // a thread that is kept from the processor for long seems to do other work between
			if c.news {
				if waits, _ := hostcalls.AcceptPolls(other, 1); waits != 0 {
					t.Fatalf("%s: a poll of a listen that does not wait was answered here", c.what)
				}
			}
			waits, slept := hostcalls.AcceptPolls(listen, c.polls)
			if waits != c.polls {
				t.Fatalf("%s: %d of %d polls were answered", c.what, waits, c.polls)
			}
			if rests += slept; rests > 0 && c.rests {
				break
			}
		}
		if few := turns / 20; (rests > 0) != c.rests && (c.rests || rests > few) { // a page fault may sleep as well
			t.Errorf("%s: the thread slept %d times", c.what, rests)
		}
	}
}
