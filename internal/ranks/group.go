// Package ranks runs the ranks of one communicator, each with a host process of
// its own, on this machine or on several, and moves verified data around a ring.
package ranks

import (
	"fmt"
	"slices"
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
	// Abort tells why this rank ends; the first such cause fails the Gather of
	// all others.
	Abort(cause error)
	// Verdict is what all ranks' causes come to, once all have told them; for
	// ranks that have aborted. told: rank 0 formed it, and so says it too.
	Verdict() (text string, told bool)
	// Leave ends a rank's part in order, after its last Gather.
	Leave()
	// Failed is closed when some rank has failed.
	Failed() <-chan struct{}
}

// lateError is that ranks did not come to a Gather in time.
type lateError struct {
	name, who string
	limit     time.Duration
}

func (e *lateError) Error() string {
	return fmt.Sprintf("no word from %s within %v (%s)", e.who, e.limit, e.name)
}

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
	told    []*Failure
	round   *round
	missing int
}

type round struct {
	name  string
	parts [][]byte
	came  []bool
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
	f := failureOf(l.rank, cause)
	if slices.ContainsFunc(l.told, func(o *Failure) bool { return o.Rank == l.rank }) {
		return
	}
	l.told = append(l.told, f)
	if l.cause == nil {
		l.cause = &AbortError{f}
		close(l.failed)
	}
}

// Verdict is for when every rank has ended.
func (l *local) Verdict() (text string, told bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return verdict(l.size, l.told), true
}

func (l *local) Gather(name string, mine []byte) ([][]byte, error) {
	l.mu.Lock()
	if l.round == nil {
		l.round = &round{name: name, parts: make([][]byte, l.size), came: make([]bool, l.size), full: make(chan struct{})}
		l.missing = l.size
	}
	r := l.round
	if r.name != name {
		l.mu.Unlock()
		return nil, fmt.Errorf("rank %d is at %q while others are at %q", l.rank, name, r.name)
	}
	r.parts[l.rank], r.came[l.rank] = mine, true
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
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, &lateError{name, list(l.size, func(k int) bool { return !r.came[k] }), l.limit}
	}
}
