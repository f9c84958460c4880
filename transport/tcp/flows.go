package tcp

import (
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/task"
)

// Flows looks after what TCP streams carry. The kernel repeats a packet for a
// quarter of an hour before it gives a connection up; the option that ends it
// sooner, TCP_USER_TIMEOUT, ends one whose peer is stopped as well. So there is one
// goroutine per process, while there are streams:
//
//  1. Each turn asks the kernel about the streams that may have packets under way.
//  2. One that repeats them, or gets none out, with the peer's window open and
//     nothing acknowledged for nearly T, has no path: its comm ends, on both sides.
//
// A closed window is a peer that does not read, stopped or slow, and no failure.
type Flows struct {
	log   report.Logger
	limit time.Duration // found so that a turn later is within T
	every time.Duration // a turn

	mu      sync.Mutex
	running bool               // protected by mu, as all below
	all     map[Streams]*flown // from the opening of their comms to the closing
}

// Streams are those of a comm, as Flows needs them.
type Streams interface {
	// Over reports whether the comm has ended for its host.
	Over() bool
	// Moved is what the comm has done so far; while it stays the same, nothing was sent.
	Moved() fastpath.Stats
	// Each calls look for every stream that is open, in order.
	Each(look func(stream, fd int))
	// NoPath ends the comm: nothing that the stream sent was acknowledged for limit.
	NoPath(stream int, now *Flow, limit time.Duration)
}

// flown is a comm as it was seen last. All is protected by Flows.mu.
type flown struct {
	settled fastpath.Stats // with these nothing was under way
	streams []Stuck        // in their order
}

// lost is a stream without a path.
type lost struct {
	of     Streams
	stream int
	now    Flow
}

// NewFlows returns one that finds a lost path within timeout.
func NewFlows(timeout time.Duration, log report.Logger) *Flows {
	return &Flows{log: log, limit: timeout - timeout/10, every: timeout / 20, all: map[Streams]*flown{}}
}

// Add looks after the streams of a comm from now on, so many of them.
func (f *Flows) Add(s Streams, streams int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[s] = &flown{streams: make([]Stuck, streams)}
	if !f.running {
		f.running = true
		go f.run()
	}
}

// Remove ends that.
func (f *Flows) Remove(s Streams) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, s)
}

func (f *Flows) run() {
	defer task.Rescue(f.log, "liveness", func(error) {
		f.mu.Lock()
		f.running = false
		f.mu.Unlock()
	})
	for looked := time.Now(); ; {
		time.Sleep(f.every)
		now := time.Now()
		// A process that was stopped, or had no processor, was not waiting.
		gone, more := f.turn(min(now.Sub(looked), 2*f.every))
		for i := range gone {
			gone[i].of.NoPath(gone[i].stream, &gone[i].now, f.limit)
		}
		if looked = now; !more {
			return
		}
	}
}

// turn looks at all comms after a while, and returns what has no path, and whether
// any comm is left.
func (f *Flows) turn(after time.Duration) (gone []lost, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s, x := range f.all {
		if l, is := f.look(s, x, after); is {
			gone = append(gone, l)
		}
	}
	f.running = len(f.all) > 0
	return gone, f.running
}

// look asks about a comm's streams, unless all was acknowledged when it was seen
// last and nothing has been written since.
func (f *Flows) look(s Streams, x *flown, after time.Duration) (gone lost, is bool) {
	moved := s.Moved()
	if moved == x.settled || s.Over() {
		return gone, false
	}
	idle := true
	s.Each(func(i, fd int) {
		now, err := ReadFlow(fd)
		if err != nil || is {
			return // the executor meets what is wrong with it
		}
		idle = idle && !now.Under && !now.Waiting
		stuck := &x.streams[i]
		if stuck.Saw(&now, after, f.limit); stuck.Still >= f.limit && now.Lost() {
			gone, is = lost{s, i, now}, true
		}
	})
	if idle && !is {
		x.settled = moved
	}
	return gone, is
}
