// Package ranks runs the ranks of one communicator, each with a host process of
// its own, on this machine or on several, and moves verified data around a ring.
package ranks

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Group is how ranks exchange small things before there is a network: what NCCL's
// bootstrap does.
type Group interface {
	Rank() int
	Size() int
	// Gather gives every rank's bytes to every rank; all call it in the same
	// order with the same name. It fails when a rank has failed or is late.
	Gather(name string, mine []byte) ([][]byte, error)
	// Abort makes the Gather of all other ranks fail with this cause.
	Abort(cause error)
	// Leave ends a rank's part in order, after its last Gather.
	Leave()
	// Failed is closed when some rank has failed.
	Failed() <-chan struct{}
}

// AbortError is another rank's failure, as the others see it.
type AbortError struct {
	Rank  int
	Cause string
}

func (e *AbortError) Error() string { return fmt.Sprintf("rank %d failed: %s", e.Rank, e.Cause) }

// errLate is a rank that did not come to a Gather in time.
var errLate = errors.New("not all ranks came in time")

// local is a group whose ranks are goroutines of this process.
type local struct {
	rank int
	*room
}

type room struct {
	size    int
	limit   time.Duration
	failed  chan struct{}
	mu      sync.Mutex // protects what follows
	cause   *AbortError
	round   *round
	missing int
}

type round struct {
	name  string
	parts [][]byte
	full  chan struct{}
}

// Local makes the groups of n ranks in this process.
func Local(n int, limit time.Duration) []Group {
	r := &room{size: n, limit: limit, failed: make(chan struct{}), missing: n}
	out := make([]Group, n)
	for i := range out {
		out[i] = &local{i, r}
	}
	return out
}

func (l *local) Rank() int               { return l.rank }
func (l *local) Size() int               { return l.size }
func (l *local) Failed() <-chan struct{} { return l.failed }
func (l *local) Leave()                  {}

func (l *local) Abort(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = &AbortError{l.rank, cause.Error()}
		close(l.failed)
	}
}

func (l *local) Gather(name string, mine []byte) ([][]byte, error) {
	l.mu.Lock()
	if l.round == nil {
		l.round = &round{name: name, parts: make([][]byte, l.size), full: make(chan struct{})}
		l.missing = l.size
	}
	r := l.round
	if r.name != name {
		l.mu.Unlock()
		return nil, fmt.Errorf("rank %d is at %q while others are at %q", l.rank, name, r.name)
	}
	r.parts[l.rank] = mine
	if l.missing--; l.missing == 0 {
		l.round = nil
		close(r.full)
	}
	l.mu.Unlock()
	t := time.NewTimer(l.limit)
	defer t.Stop()
	select {
	case <-r.full:
		return r.parts, nil
	case <-l.failed:
		return nil, l.cause
	case <-t.C:
		return nil, fmt.Errorf("%s: %w (%v)", name, errLate, l.limit)
	}
}
