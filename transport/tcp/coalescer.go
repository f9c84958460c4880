package tcp

import (
	"slices"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/task"
)

const (
	coalesceEvery = time.Millisecond      // a turn, which Go makes no shorter where it has nothing else to do
	coalesceRest  = 16 * time.Millisecond // a turn at most, while nobody sends
	coalesceLeast = 64_000                // sends a second; slower ones are not tried
	coalesceGain  = 1.5                   // as many times the sends a second, at least
	streakMost    = 1 << 20               // small sends in a row after which one is looked at again that was in vain every time
)

// Coalescer decides whose small sends are done once they are copied (coalesce.c).
// That is for a host that sends one after the other as fast as it can. Where there is
// a pause between two sends, the first would only wait for the second. So a comm whose
// small sends follow one another is tried, and stays for as long as its host sends
// faster by half for it.
//
// It also owns what has not left: a turn without a send writes it, so that nothing
// waits for more than two turns, but for a kernel that has no room. One goroutine
// serves all comms, and none exists while there are none.
type Coalescer struct {
	log     report.Logger
	lingers func(n int) // counts comms for which the exit of the process waits

	mu      sync.Mutex
	comms   []*coalescing // protected by mu, as all below
	running bool
}

// coalescing is a comm that is looked at. All is protected by Coalescer.mu.
type coalescing struct {
	fp      *fastpath.Comm
	state   coalesceState
	lingers bool      // the exit of the process waits for it
	base    float64   // sends a second without
	sends   uint64    // when it was looked at last,
	at      time.Time // and when that was
}

// coalesceState is where a comm stands; each follows the one before it.
type coalesceState int

const (
	measured coalesceState = iota
	begun                  // since the last turn, whose sends are of both kinds
	tried
	gains
	over // but for what is still to be written
)

// NewCoalescer returns one; lingers counts comms for which the exit of the process waits.
func NewCoalescer(log report.Logger, lingers func(n int)) *Coalescer {
	return &Coalescer{log: log, lingers: lingers}
}

// Add looks at the sends of an open comm for as long as it is worth it, at most until Remove.
func (o *Coalescer) Add(fp *fastpath.Comm) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.comms, func(c *coalescing) bool { return c.fp == fp }) {
		return
	}
	o.comms = append(o.comms, &coalescing{fp: fp, sends: fp.Snapshot().Messages, at: time.Now()})
	if !o.running {
		o.running = true
		go o.run()
	}
}

// Remove lets go of a comm that is about to be closed: it touches it no more. The
// exit of the process waits for what has not left until owned is called, by whoever
// writes it.
func (o *Coalescer) Remove(fp *fastpath.Comm) (owned func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owned = func() {}
	o.comms = slices.DeleteFunc(o.comms, func(c *coalescing) bool {
		if c.fp == fp {
			c.end()
			owned = func() { o.drop(c) }
		}
		return c.fp == fp
	})
	return owned
}

// run looks at the comms turn by turn until none is left.
func (o *Coalescer) run() {
	defer task.Rescue(o.log, "isend", func(error) { o.giveUp() })
	pause := coalesceEvery
	for {
		time.Sleep(pause)
		sent, more := o.turn(time.Now)
		if !more {
			return
		}
		if pause = min(2*pause, coalesceRest); sent {
			pause = coalesceEvery
		}
	}
}

// turn looks at every comm. It reports whether any has sent, and whether any is left.
func (o *Coalescer) turn(clock func() time.Time) (sent, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := clock()
	o.comms = slices.DeleteFunc(o.comms, func(c *coalescing) bool {
		is := c.fp.Snapshot()
		if now.Sub(c.at) < coalesceEvery/8 { // it was added just now: so short a time says nothing
			sent = true
			return false
		}
		sent = sent || is.Messages != c.sends
		rate := float64(is.Messages-c.sends) / now.Sub(c.at).Seconds()
		c.sends, c.at = is.Messages, now
		if o.judge(c, rate, is.Code != 0 || fastpath.Exiting()); c.state != over {
			return false
		}
		if is.Code == 0 && !writeCoalesced(c.fp) { // once the gate was held no call coalesces any more
			return false
		}
		o.drop(c)
		return true
	})
	o.running = len(o.comms) > 0
	return sent, o.running
}

// judge decides how a comm goes on that has sent at that rate since the last turn; ends: it cannot. Called with mu held.
func (o *Coalescer) judge(c *coalescing, rate float64, ends bool) {
	switch {
	case ends:
		c.end()
	case c.state == measured && rate >= coalesceLeast:
		c.base, c.state, c.lingers = rate, begun, true
		o.lingers(1)
		c.fp.Coalesce(true)
	case c.state == begun && rate > 0:
		c.state = tried
	case (c.state == tried || c.state == gains) && rate >= coalesceGain*c.base:
		c.state = gains
		c.fp.SetStreak(streakFirst)
	case c.state != over:
		if c.state != gains {
			c.fp.SetStreak(min(2*c.fp.Streak(), streakMost))
		}
		c.end()
	}
}

// end has every send leave again before it is done. Called with mu held.
func (c *coalescing) end() {
	c.fp.Coalesce(false)
	c.state = over
}

// drop has the exit of the process no longer wait for a comm, which has one owner.
func (o *Coalescer) drop(c *coalescing) {
	if c.lingers {
		c.lingers = false
		o.lingers(-1)
	}
}

// giveUp lets go of all comms, after a defect: a new goroutine serves what comes later.
func (o *Coalescer) giveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.comms {
		c.end()
		o.drop(c)
	}
	o.comms, o.running = nil, false
}
