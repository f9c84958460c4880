package tcp

import "time"

// Stuck is a stream that has owed its peer something, and for how long it has
// done so without progress.
type Stuck struct {
	Still time.Duration // nothing was acknowledged for so long, with the peer's window open

	owes    bool
	acked   uint64
	windows bool // the kernel has told of an open window: it tells
}

// Saw takes in what the kernel says now, a while after it was asked last. A
// peer whose window is closed answers within limit where the kernel does not
// tell of windows.
func (s *Stuck) Saw(now *Flow, after, limit time.Duration) {
	was := *s
	*s = Stuck{owes: now.Owes(), acked: now.Acked, windows: was.windows || now.Window > 0}
	closed := now.Window == 0
	if !s.windows {
		closed = now.Heard < limit // a peer whose window is closed answers all the same
	}
	if s.owes && was.owes && now.Acked == was.acked && !closed {
		s.Still = was.Still + after
	}
}
