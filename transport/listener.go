package transport

import (
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/wire"
)

const (
	waitingLimit = 1024 // comms of a listen that are being set up, or wait for accept
	noncesKept   = 4096 // of a listen, twice
)

// Listener is one listen of the host. Connections to it come about in the
// background; Accept hands them out.
type Listener struct {
	ctx    *Context
	dev    *device.Device
	handle uint64            // what the host holds
	reach  rendezvous.Listen // how others find it

	mu     sync.Mutex
	nonces [2]map[wire.Nonce]struct{} // seen: the latest, and those before; protected by mu, as all below
	ready  []outcome                  // waiting for accept, in order
	setup  map[setup]struct{}
	closed bool
}

// listenerKind keeps listen handles apart from the executor's, whose kinds are 1 to 4.
const listenerKind = 5

// A process has one table of listens, whatever number of cores, as of comms.
var listeners = task.NewIDs[*Listener](listenerKind << 60)

// Handle is the value that the host holds.
func (l *Listener) Handle() uintptr { return uintptr(l.handle) }

// wait is that of the host's accepts. l.mu is held where it begins and ends.
func (l *Listener) wait() fastpath.Wait { return fastpath.AcceptWait(l.handle) }

// Table is the version of the table that the host uses.
func (l *Listener) Table() int { return l.ctx.opts.Table }

// Log speaks to the host that has l.
func (l *Listener) Log() report.Logger { return l.ctx.opts.Log }

// ListenerOf finds the listen behind a value that the host gave.
func ListenerOf(handle uintptr) (*Listener, error) {
	if l, ok := listeners.Get(uint64(handle)); ok {
		return l, nil
	}
	return nil, report.Errorf(report.Misuse, "listen comm", "%#x is no open listen: closed already, or not weft's", uint64(handle))
}

// Accept returns the next connection, nil while there is none, or why this host
// could not make one that the peer has connected.
func (l *Listener) Accept() (*comms.Comm, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, report.Errorf(report.Misuse, "accept", "the listen was closed").On(l.dev.Name)
	}
	if len(l.ready) == 0 {
		return nil, nil
	}
	next := l.ready[0]
	l.ready[0] = outcome{}
	l.ready = l.ready[1:]
	if len(l.ready) == 0 {
		l.wait().Begin()
	}
	if next.comm != nil {
		next.comm.Wanted()
	}
	return next.comm, next.err
}

// Close ends the listen and every connection that nobody accepted.
func (l *Listener) Close() error {
	if _, ok := listeners.Take(l.handle); !ok {
		return report.Errorf(report.Misuse, "closeListen", "the listen was closed before").On(l.dev.Name)
	}
	l.mu.Lock()
	l.closed = true
	l.wait().End()
	ready, setup := l.ready, l.setup
	l.ready, l.setup, l.nonces = nil, nil, [2]map[wire.Nonce]struct{}{}
	l.mu.Unlock()
	l.ctx.sockets.Forget(&l.reach)
	disown(l.ctx, l.ctx.owned.listeners, asking(l))
	for in := range setup {
		in.abort(nil)
	}
	for _, o := range ready {
		if o.comm != nil {
			o.comm.Close()
		}
	}
	return nil
}

// abandon closes a listen that the host gave up.
func (l *Listener) abandon() { _ = l.Close() } // an error: its host was quicker

func (l *Listener) on() *device.Device { return l.dev }

// over reports whether the host has closed the listen: what ends then ends for that.
func (l *Listener) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// fresh remembers a nonce and reports whether it is the first time. The oldest are
// forgotten in the end: who then repeats one gets an answer, and a place among the comms
// that are being set up until another needs it, and no further, for frame 3 proves the
// token anew.
func (l *Listener) fresh(n wire.Nonce) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	for _, kept := range l.nonces {
		if _, seen := kept[n]; seen {
			return false
		}
	}
	if len(l.nonces[0]) >= noncesKept {
		l.nonces[0], l.nonces[1] = nil, l.nonces[0]
	}
	if l.nonces[0] == nil {
		l.nonces[0] = map[wire.Nonce]struct{}{}
	}
	l.nonces[0][n] = struct{}{}
	return true
}

// begin records a comm whose set-up has begun. Where there are as many as there may be, the
// oldest gives way that may be a replay.
func (l *Listener) begin(in setup) bool {
	l.mu.Lock()
	var gone setup
	full := len(l.setup)+len(l.ready) >= waitingLimit
	if full && !l.closed {
		gone = l.oldestUnproven()
		delete(l.setup, gone)
	}
	taken := !l.closed && (!full || gone != nil)
	if taken {
		l.setup[in] = struct{}{}
	}
	l.mu.Unlock()
	if gone != nil {
		gone.abort(nil)
	}
	return taken
}

// oldestUnproven is the set-up without frame 3 and attach that has begun first; nil: there is
// none. l.mu is held.
func (l *Listener) oldestUnproven() (oldest setup) {
	var begun time.Time
	for in := range l.setup {
		if since, is := in.unproven(); is && (oldest == nil || since.Before(begun)) {
			oldest, begun = in, since
		}
	}
	return oldest
}

// outcome is what one accept returns: a comm, or why this host could not make
// the one that the peer believes to have.
type outcome struct {
	comm *comms.Comm
	err  error
}

// deliver forgets a comm whose set-up has ended, and queues what came of it for accept
// unless that concerns nobody but the peer.
func (l *Listener) deliver(in setup, o outcome) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.setup, in)
	if l.closed || o == (outcome{}) {
		return false
	}
	l.ready = append(l.ready, o)
	l.wait().End()
	fastpath.ProgressWake()
	return true
}
