package transport

import (
	"container/list"
	"sync"
	"time"
)

const (
	pendingCap = 256                    // connections without a full frame 1, over all listeners
	pendingAge = 100 * time.Millisecond // older than this they may be closed for a newcomer
)

// pending holds the connections that have proved nothing yet. It bounds what a
// stranger can make this process hold.
type pending struct {
	mu    sync.Mutex
	conns list.List     // of *waiting, oldest first; protected by mu
	room  chan struct{} // a place became free
}

type waiting struct {
	conn  *conn
	since time.Time
	place *list.Element // nil once it left
}

func newPending() *pending { return &pending{room: make(chan struct{}, 1)} }

// enter takes conn in. At the cap it closes the oldest that had its 100 ms, or
// waits until there is one; the kernel's backlog holds the others meanwhile.
func (p *pending) enter(c *conn) *waiting {
	for {
		p.mu.Lock()
		now := time.Now()
		wait := time.Duration(0)
		if p.conns.Len() >= pendingCap {
			oldest := p.conns.Front().Value.(*waiting)
			wait = pendingAge - now.Sub(oldest.since)
			if wait <= 0 {
				p.remove(oldest)
				oldest.conn.Close()
			}
		}
		if wait <= 0 {
			w := &waiting{conn: c, since: now}
			w.place = p.conns.PushBack(w)
			p.mu.Unlock()
			return w
		}
		p.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-p.room:
			t.Stop()
		case <-t.C:
		}
	}
}

// leave takes w out: it proved itself, or it was closed.
func (p *pending) leave(w *waiting) {
	p.mu.Lock()
	p.remove(w)
	p.mu.Unlock()
	select {
	case p.room <- struct{}{}:
	default:
	}
}

func (p *pending) remove(w *waiting) {
	if w.place != nil {
		p.conns.Remove(w.place)
		w.place = nil
	}
}
