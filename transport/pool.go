package transport

import (
	"slices"
	"sync"
	"time"

	"weft/internal/knob"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/verbs"
)

// Queue pairs are what takes time in a connect over RDMA: each is made, brought
// through three states on both sides and given memory by the card. So when both
// sides have closed a connection and nothing of it is under way, its queue pairs
// stay connected for a while, and the next connection between the same ports may
// have them. The two sides do not talk about that when they close: the connecting
// side offers what it has, by the id of the connection that had it, and the
// listening side still has it too or refuses; then there are new ones. All else
// of a connection is made anew, and no byte passes before each queue pair has
// been proven again.

// pool keeps what closed connections leave, newest last: WEFT_POOL of them,
// for poolAge, and only while the process has connections over RDMA.
type pool struct {
	core *Core
	age  time.Duration

	mu    sync.Mutex
	most  int         // protected by mu, as all below
	kits  []*kit      // oldest first
	timer *time.Timer // for the oldest; nil: there was none
}

// poolAge is as long as a session outlives its last comm.
const poolAge = session.LingerIdle

func newPool(c *Core) *pool {
	return &pool{core: c, most: int(c.cfg.Knobs.Int(knob.Pool)), age: poolAge}
}

// keeps reports whether the pool takes in anything.
func (p *pool) keeps() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most > 0
}

// put takes in what a connection leaves, unless nobody can ask for it: with the
// last connection, its session or the last context everything goes, and with a
// card or port what was on it.
func (p *pool) put(k *kit) {
	p.mu.Lock()
	k.since = time.Now()
	p.kits = append(p.kits, k)
	for len(p.kits) > p.most {
		one := p.surplus()
		p.drop(func(k *kit) bool { return k == one })
	}
	p.wake()
	p.mu.Unlock()
	// Whatever ends these says so first and looks here then; so it is the other way
	// round here. And without mu: they are asked with locks that those hold who make
	// queue pairs, which may have the pool yield.
	if p.core.watch.idle() || p.core.finalized() || k.session.Over() != nil || k.down() {
		p.forget(func(have *kit) bool { return have == k })
	}
}

// surplus is the one that goes first: of the session whose turn it is, that of the
// earliest connection. In whatever order two processes hear what is closed, they
// keep the same ones. Called with mu held.
func (p *pool) surplus() *kit {
	one := p.kits[0]
	for _, k := range p.kits {
		if k.session == one.session && k.comm < one.comm {
			one = k
		}
	}
	return one
}

// take gives away the newest one that suits.
func (p *pool) take(suits func(*kit) bool) *kit {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, k := range slices.Backward(p.kits) {
		if suits(k) {
			p.kits = slices.Delete(p.kits, i, i+1)
			return k
		}
	}
	return nil
}

// wake sees to it that the oldest ends in time. Called with mu held.
func (p *pool) wake() {
	if p.timer == nil && len(p.kits) > 0 {
		p.timer = time.AfterFunc(p.age-time.Since(p.kits[0].since), p.aged)
	}
}

// aged ends those that have been there for long enough.
func (p *pool) aged() {
	defer task.Rescue(p.core.cfg.Log, "pool", task.Nobody)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	p.drop(func(k *kit) bool { return time.Since(k.since) >= p.age })
	p.wake()
}

// drop ends those that go, in the background. Called with mu held.
func (p *pool) drop(goes func(*kit) bool) {
	if gone := p.remove(goes); len(gone) > 0 {
		p.core.reaper.Lingers(1)
		go func() {
			defer task.Rescue(p.core.cfg.Log, "pool", task.Nobody)
			defer p.core.reaper.Lingers(-1)
			for _, k := range gone {
				k.destroy()
			}
		}()
	}
}

// remove takes out those that go, the oldest first. Called with mu held.
func (p *pool) remove(goes func(*kit) bool) (gone []*kit) {
	for i := 0; i < len(p.kits); {
		if k := p.kits[i]; goes(k) {
			gone = append(gone, k)
			p.kits = slices.Delete(p.kits, i, i+1)
			continue
		}
		i++
	}
	return gone
}

// empty ends all.
func (p *pool) empty() { p.forget(func(*kit) bool { return true }) }

// forget ends those that nobody may have any more.
func (p *pool) forget(goes func(*kit) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(goes)
}

// yield ends all at once, for a card that has none left; false: there is nothing.
func (p *pool) yield() bool {
	p.mu.Lock()
	gone := p.remove(func(*kit) bool { return true })
	p.mu.Unlock()
	for _, k := range gone {
		k.destroy()
	}
	return len(gone) > 0
}

// heard ends what an event concerns: whatever happens to a card or a port, what
// was proven on it before may not hold.
func (p *pool) heard(e *verbs.Event) {
	if e.Kind != verbs.EventCommEst {
		p.forget(func(k *kit) bool { return k.concerned(e) })
	}
}
