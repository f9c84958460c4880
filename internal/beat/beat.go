// Package beat says what is under way when nothing else has been said for a while.
package beat

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Patience is how long a command may be silent.
const Patience = 10 * time.Second

// Beat watches one thing that is under way.
type Beat struct {
	every time.Duration
	began time.Time

	spoke atomic.Int64 // when, in nanoseconds since it began

	mu    sync.Mutex // protects what follows, and each say
	timer *time.Timer
	over  bool
}

// Start has say called, with the time since the start, each time that nothing was said for almost Patience. Say must not
// stop it.
func Start(say func(since time.Duration)) *Beat { return start(Patience-time.Second, say) }

func start(every time.Duration, say func(since time.Duration)) *Beat {
	b := &Beat{every: every, began: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(every, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.over {
			return
		}
		if silent := time.Since(b.began) - time.Duration(b.spoke.Load()); silent < b.every {
			b.timer.Reset(b.every - silent)
			return
		}
		say(time.Since(b.began).Round(time.Second))
		b.Spoke()
		b.timer.Reset(b.every)
	})
	return b
}

// Spoke is for who has said something.
func (b *Beat) Spoke() { b.spoke.Store(int64(time.Since(b.began))) }

// Stop ends it: say is not running any more, and not called again.
func (b *Beat) Stop() {
	b.mu.Lock()
	b.over = true
	b.timer.Stop()
	b.mu.Unlock()
}

// Writer passes on what is said through w.
func (b *Beat) Writer(w io.Writer) io.Writer { return &writer{b, w} }

type writer struct {
	b *Beat
	w io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	w.b.Spoke()
	return w.w.Write(p)
}
