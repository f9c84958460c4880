// Package pool keeps the queue pairs of closed connections for those that follow.
//
// Queue pairs are what takes time in a connect over RDMA: each is made, brought
// through three states on both sides and given memory by the card. So when both
// sides have closed a connection and nothing of it is under way, its queue pairs
// stay connected for a while, and the next connection between the same ports may
// have them. The two sides do not talk about that when they close: the connecting
// side offers what it has, by the id of the connection that had it, and the
// listening side still has it too or refuses; then there are new ones. All else
// of a connection is made anew, and no byte passes before each queue pair has
// been proven again.
package pool

import (
	"slices"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs/event"
	"weft/transport/verbs/ibv"
)

// Kit is what a connection leaves to a later one. It is a pointer.
type Kit interface {
	comparable
	Session() *session.Session // of the connection that it was made for
	Comm() uint64              // that connection, to the session
	Concerned(e *event.Event) bool
	Down() bool // a port of it is not to be used
	Destroy()   // ends what nobody will use
}

// Config is what a pool needs of its process.
type Config struct {
	Log       report.Logger
	Most      int                                         // kits; 0: none is kept
	Age       time.Duration                               // for which each is kept
	AfterFunc func(d time.Duration, f func()) *time.Timer // time.AfterFunc
	Lingers   func(n int)                                 // counts what still ends in the background
	Vain      func() bool                                 // nobody can ask for a kit: there is no connection over RDMA, or no context
}

// Pool keeps what closed connections leave, newest last.
type Pool[K Kit] struct {
	cfg Config

	mu    sync.Mutex
	kits  []kept[K]   // protected by mu, oldest first
	timer *time.Timer // for the oldest; nil: there was none; protected by mu
}

type kept[K Kit] struct {
	kit   K
	since time.Time
}

// New is a pool with nothing in it.
func New[K Kit](cfg Config) *Pool[K] { return &Pool[K]{cfg: cfg} }

// Keeps reports whether the pool takes in anything.
func (p *Pool[K]) Keeps() bool { return p.cfg.Most > 0 }

// Put takes in what a connection leaves, unless nobody can ask for it: with the
// last connection, its session or the last context everything goes, and with a
// card or port what was on it.
func (p *Pool[K]) Put(k K) {
	p.mu.Lock()
	p.kits = append(p.kits, kept[K]{k, time.Now()})
	for len(p.kits) > p.cfg.Most {
		one := p.surplus()
		p.drop(func(k kept[K]) bool { return k.kit == one })
	}
	p.wake()
	p.mu.Unlock()
	// Whatever ends them says so first and looks here afterwards; so here the kit goes
	// in first and the question comes afterwards. It is asked without mu: those asked
	// take locks that are held while queue pairs are made, which may have the pool yield.
	if p.cfg.Vain() || k.Session().Over() != nil || k.Down() {
		p.Forget(func(have K) bool { return have == k })
	}
}

// surplus is the one that goes first: of the session whose turn it is, that of the
// earliest connection. In whatever order two processes hear what is closed, they
// keep the same ones. Called with mu held.
func (p *Pool[K]) surplus() K {
	one := p.kits[0].kit
	for _, k := range p.kits {
		if k.kit.Session() == one.Session() && k.kit.Comm() < one.Comm() {
			one = k.kit
		}
	}
	return one
}

// Take gives away the newest one that suits; the zero value: there is none.
func (p *Pool[K]) Take(suits func(K) bool) (none K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, k := range slices.Backward(p.kits) {
		if suits(k.kit) {
			p.kits = slices.Delete(p.kits, i, i+1)
			return k.kit
		}
	}
	return none
}

// wake sees to it that the oldest ends in time. Called with mu held.
func (p *Pool[K]) wake() {
	if p.timer == nil && len(p.kits) > 0 {
		due := p.kits[0].since.Add(p.cfg.Age)
		p.timer = p.cfg.AfterFunc(time.Until(due), func() {
			defer task.Rescue(p.cfg.Log, "pool", task.Nobody)
			p.expire(due)
		})
	}
}

// expire is the timer's turn: it ends those that have been there for long enough at the time that it was set for.
func (p *Pool[K]) expire(due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.drop(func(k kept[K]) bool { return due.Sub(k.since) >= p.cfg.Age })
	p.wake()
}

// drop ends those that go, in the background. Called with mu held.
func (p *Pool[K]) drop(goes func(kept[K]) bool) {
	if gone := p.remove(goes); len(gone) > 0 {
		p.cfg.Lingers(1)
		go func() {
			defer task.Rescue(p.cfg.Log, "pool", task.Nobody)
			defer p.cfg.Lingers(-1)
			for _, k := range gone {
				k.Destroy()
			}
		}()
	}
}

// remove takes out those that go, the oldest first. Called with mu held.
func (p *Pool[K]) remove(goes func(kept[K]) bool) (gone []K) {
	for i := 0; i < len(p.kits); {
		if k := p.kits[i]; goes(k) {
			gone = append(gone, k.kit)
			p.kits = slices.Delete(p.kits, i, i+1)
			continue
		}
		i++
	}
	return gone
}

// Empty ends all.
func (p *Pool[K]) Empty() { p.Forget(func(K) bool { return true }) }

// Forget ends those that nobody may have any more.
func (p *Pool[K]) Forget(goes func(K) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(func(k kept[K]) bool { return goes(k.kit) })
}

// Yield ends all at once, for a card that has no queue pair left; false: there is nothing to end.
func (p *Pool[K]) Yield() bool {
	p.mu.Lock()
	gone := p.remove(func(kept[K]) bool { return true })
	p.mu.Unlock()
	for _, k := range gone {
		k.Destroy()
	}
	return len(gone) > 0
}

// Heard ends what an event concerns: whatever happens to a card or a port, what
// was proven on it before may not hold.
func (p *Pool[K]) Heard(e *event.Event) {
	if e.Kind != ibv.EventCommEst {
		p.Forget(func(k K) bool { return k.Concerned(e) })
	}
}
