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

// Watcher looks at the comms of a process. Until it is started it only replies.
type Watcher struct {
	cfg      Config
	least    time.Duration // a wait that is told
	every    time.Duration // a look
	lapse    time.Duration // between two looks: this process has stood still itself
	patience time.Duration // for a reply
	self     string
	stop     chan struct{}
	stopped  sync.Once

	mu     sync.Mutex
	looked time.Time         // the last look; zero: it does not watch; protected by mu, as all below
	moving bool              // some moved between the last two looks
	broken string            // a connection that had failed at the last look; empty: none
	comms  map[Subject]*seen // those of the last look
	waits  map[waitKey]*wait // what they wait for
	looks  uint              // so far
	lossy  map[waitKey]lossy // ways that lose packets
}

// Config is what a watcher has of its process.
type Config struct {
	Log   report.Logger
	Host  string
	PID   uint32
	Least time.Duration    // a wait is told when it has lasted so long
	Comms func() []Subject // those that are open
}

// New is a watcher that does not look yet.
func New(c Config) *Watcher {
	every := max(min(c.Least/8, time.Second/2), time.Second/10)
	return &Watcher{cfg: c, least: c.Least, every: every, lapse: max(4*every, time.Second), patience: max(4*every, time.Second),
		self: name(c.Host, c.PID), stop: make(chan struct{}), comms: map[Subject]*seen{}, waits: map[waitKey]*wait{}, lossy: map[waitKey]lossy{}}
}

// Start has it look, until Stop.
func (w *Watcher) Start() { go w.run() }

// Stop ends that.
func (w *Watcher) Stop() { w.stopped.Do(func() { close(w.stop) }) }

func (w *Watcher) run() {
	defer task.Rescue(w.cfg.Log, "stall", func(error) {
		w.mu.Lock()
		w.looked = time.Time{}
		w.mu.Unlock()
	})
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			w.turn(time.Now(), w.cfg.Comms())
		}
	}
}

// turn looks at all comms once, asks, and says what there is to say. A process that
// has stood still itself, as under a debugger or with its machine, has not waited:
// it starts anew.
func (w *Watcher) turn(now time.Time, all []Subject) {
	w.mu.Lock()
	after := now.Sub(w.looked)
	if w.looked.IsZero() || after > w.lapse {
		clear(w.comms)
		clear(w.waits)
	}
	w.looked = now
	over := w.gather(all, min(after, 2*w.every))
	sorted := slices.SortedFunc(maps.Values(w.waits), func(a, b *wait) int { return cmp.Compare(b.waited, a.waited) })
	for _, x := range sorted {
		w.find(x, now)
	}
	said := slices.Concat(ends(over), w.lines(sorted, now), w.losses(all, now))
	ask := w.asks(sorted, now)
	meter.Stalls(w.told(sorted))
	w.mu.Unlock()
	for _, q := range ask {
		q.to.TellLater(q.m)
	}
	for _, l := range said {
		l.log.Warn("%s", l.text)
		record.Say(l.text)
	}
}

// told counts the waits that were told first just now, and those that were told and
// last; w.mu is held.
func (w *Watcher) told(all []*wait) (first, last int) {
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
