package transport

import (
	"strings"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/task"
	"weft/transport/tcp"
)

// flows looks after what TCP streams carry. The kernel repeats a packet for a
// quarter of an hour before it gives a connection up; the option that ends it
// sooner, TCP_USER_TIMEOUT, ends one whose peer is stopped as well. So there is one
// goroutine a core, while there are streams:
//
//  1. Each turn asks the kernel about the streams that may have packets under way.
//  2. One that repeats them, or gets none out, with the peer's window open and
//     nothing acknowledged for nearly T, has no path: its comm ends, on both sides.
//
// A closed window is a peer that does not read, stopped or slow, and no failure.
type flows struct {
	core  *Core
	limit time.Duration // found so that a turn later is within T
	every time.Duration // a turn

	mu      sync.Mutex
	running bool                   // protected by mu, as all below
	all     map[*tcpCarrier]*flown // from the opening of their comms to the closing
}

// flown is a comm as it was seen last. All is protected by flows.mu.
type flown struct {
	comm    *Comm
	settled fastpath.Stats // with these nothing was under way
	streams []tcp.Stuck    // in the order of the carrier's descriptors
}

func newFlows(c *Core) *flows {
	return &flows{core: c, limit: c.timeout - c.timeout/10, every: c.timeout / 20, all: map[*tcpCarrier]*flown{}}
}

func (f *flows) add(t *tcpCarrier, c *Comm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[t] = &flown{comm: c, streams: make([]tcp.Stuck, len(t.fds))}
	if !f.running {
		f.running = true
		go f.run()
	}
}

func (f *flows) remove(t *tcpCarrier) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, t)
}

func (f *flows) run() {
	defer task.Rescue(f.core.cfg.Log, "liveness", func(error) {
		f.mu.Lock()
		f.running = false
		f.mu.Unlock()
	})
	for looked := time.Now(); ; {
		time.Sleep(f.every)
		now := time.Now()
		// A process that was stopped, or had no processor, was not waiting.
		lost, more := f.turn(min(now.Sub(looked), 2*f.every))
		for c, why := range lost {
			c.fail(why)
		}
		if looked = now; !more {
			return
		}
	}
}

// turn looks at all comms after a while, and answers which of them have no path,
// and whether any is left.
func (f *flows) turn(after time.Duration) (lost map[*Comm]error, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t, x := range f.all {
		if err := f.look(t, x, after); err != nil {
			if lost == nil {
				lost = map[*Comm]error{}
			}
			lost[x.comm] = err
		}
	}
	f.running = len(f.all) > 0
	return lost, f.running
}

// look asks about a comm's streams, unless all was acknowledged when it was seen
// last and nothing has been written since.
func (f *flows) look(t *tcpCarrier, x *flown, after time.Duration) error {
	stats := x.comm.fp.Snapshot()
	if stats == x.settled || x.comm.over() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	idle := true
	for i, fd := range t.fds {
		now, err := tcp.ReadFlow(fd)
		if err != nil {
			continue // the executor meets what is wrong with it
		}
		idle = idle && !now.Under && !now.Waiting
		s := &x.streams[i]
		if s.Saw(&now, after, f.limit); s.Still >= f.limit && now.Lost() {
			return t.noPath(x.comm, i, &now, f.limit)
		}
	}
	if idle {
		x.settled = stats
	}
	return nil
}

// noPath says that a stream's packets do not arrive.
func (t *tcpCarrier) noPath(c *Comm, stream int, now *tcp.Flow, limit time.Duration) error {
	way, header := t.ways[t.wayOf[stream]], 28 // of IPv4 and ICMP
	if strings.Contains(way, ":") {
		header = 48
	}
	return report.Errorf(report.Network, c.verb(), "nothing of what stream %d sends from %s was acknowledged for %v, after %d repetitions, while the peer's window is open",
		stream, way, limit, now.Repeats).On(c.dev.Name).With(c.peer).
		Try("small packets pass, for the control connection lives: a port or tunnel on this way has a smaller MTU than %d (try ping -M do -s %d there), or the control connection goes another way and this one is cut",
			now.MTU, now.MTU-header)
}
