package stall

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/meter"
	"weft/transport/record"
	"weft/transport/task"
)

// Monitor looks at the comms of a process. Until it is started it only replies.
type Monitor struct {
	cfg     Config
	pace    pace
	stop    chan struct{}
	stopped sync.Once

	mu     sync.Mutex
	looked time.Time // the last look; zero: it does not look; protected by mu, as all below
	scene  scene
	loss   losses
}

// Config is what a monitor has of its process.
type Config struct {
	Log   report.Logger
	Host  string
	PID   uint32
	Least time.Duration    // a wait is told when it has lasted so long
	Comms func() []Subject // those that are open
}

// New is a monitor that does not look yet.
func New(c Config) *Monitor {
	return &Monitor{cfg: c, pace: newPace(c.Least), stop: make(chan struct{}), scene: newScene(name(c.Host, c.PID)), loss: losses{lossy: map[path]lossy{}}}
}

// Start has it look, until Stop.
func (m *Monitor) Start() { go m.run() }

// Stop ends that.
func (m *Monitor) Stop() { m.stopped.Do(func() { close(m.stop) }) }

func (m *Monitor) run() {
	defer task.Rescue(m.cfg.Log, "stall", func(error) {
		m.mu.Lock()
		m.looked = time.Time{}
		m.mu.Unlock()
	})
	tick := time.NewTicker(m.pace.every)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			m.turn(time.Now(), m.cfg.Comms())
		}
	}
}

// turn looks at all comms once, asks, and says what there is to say. A process that
// has stood still itself, as under a debugger or with its machine, has not waited:
// it starts anew.
func (m *Monitor) turn(now time.Time, all []Subject) {
	m.mu.Lock()
	after := now.Sub(m.looked)
	if m.looked.IsZero() || after > m.pace.lapse {
		clear(m.scene.comms)
		clear(m.scene.waits)
	}
	m.looked = now
	over := m.scene.gather(all, min(after, 2*m.pace.every), m.pace.least)
	sorted := slices.SortedFunc(maps.Values(m.scene.waits), func(a, b *wait) int { return cmp.Compare(b.waited, a.waited) })
	for _, x := range sorted {
		x.find(m.pace, now)
	}
	said := slices.Concat(overLines(over), waitLines(sorted, m.pace, now), m.lost(all, now))
	ask := questions(sorted, m.pace, now)
	meter.Stalls(told(sorted))
	m.mu.Unlock()
	for _, q := range ask {
		q.to.TellLater(q.m)
	}
	for _, l := range said {
		l.log.Warn("%s", l.text)
		record.Say(l.text)
	}
}

// lost counts what was sent again on each path since the last count, and returns the
// lines about it; m.mu is held.
func (m *Monitor) lost(all []Subject, now time.Time) (lines []line) {
	if !m.loss.due() {
		return nil
	}
	sums, of := map[path]traffic{}, map[path]Subject{}
	for _, c := range all {
		x, s := m.scene.comms[c], c.Standing()
		if x == nil || s == nil || !c.Sends() {
			continue
		}
		p := pathOf(c, s)
		packets, again := c.Sent()
		if x.add(sums, p, packets, again) {
			of[p] = c
		}
	}
	for _, l := range m.loss.count(sums, linesMost, now) {
		c := of[l.path]
		lines = append(lines, line{c.Log(), l.text(m.scene.self, nameOf(c.Member().Session), lossEvery*m.pace.every)})
	}
	return lines
}

// told counts the waits that were told first just now, and those that were told and
// last.
func told(all []*wait) (first, last int) {
	for _, x := range all {
		if x.said {
			last++
		}
		if x.said && !x.counted {
			x.counted = true
			first++
		}
	}
	return first, last
}
