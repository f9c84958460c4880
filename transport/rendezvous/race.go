package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weft/transport/task"
	"weft/transport/wire"
)

const (
	attemptEvery = 200 * time.Millisecond    // head start of each address over the next
	attemptMore  = guardLimit + 2*guardEvery // further head start of one whose host has answered: a guard takes as long
)

type outcome struct {
	w    *Won
	path Path
	err  error
}

// Race tries the paths, each a head start after the one before; a failure
// starts the next at once. The first valid frame 2 wins and ends the others. A path
// that turns out to lose large packets ends them too: it is to be tried with smaller ones.
// The first path nearly always wins, so it runs in the caller's goroutine.
func (n *Network) Race(ctx context.Context, h *wire.Handle, paths []Path, by Opening) (*Won, error) {
	first, endFirst := context.WithCancel(ctx)
	defer endFirst()
	others, endOthers := context.WithCancel(ctx)
	defer endOthers()
	s := headStart{paths: paths, others: make(chan outcome, 1)}
	s.timer = time.AfterFunc(time.Hour, func() {
		if s.yields() {
			return
		}
		defer task.Rescue(n.log, "connect", func(err error) { s.others <- outcome{err: &lostRace{cause: err}} })
		w, err := n.raceOn(others, h, paths[1:], by)
		if err == nil || isNarrow(err) {
			endFirst()
		}
		s.others <- outcome{w: w, err: err}
	})
	s.timer.Reset(attemptEvery)
	w, err := n.Attempt(first, h, paths[0], by, &s.connected)
	switch running := s.stop(); {
	case err == nil || isNarrow(err):
		if endOthers(); running {
			if r := <-s.others; r.w != nil {
				r.w.Conn.Close()
			}
		}
		return w, err
	case !running:
		w, rest := n.raceOn(others, h, paths[1:], by)
		return w, lostAlso(paths[0], err, rest)
	}
	r := <-s.others
	return r.w, lostAlso(paths[0], err, r.err)
}

// headStart decides when the other paths join the first one.
type headStart struct {
	paths     []Path
	connected atomic.Bool  // the first path's address answered
	others    chan outcome // what came of the others, once they run
	timer     *time.Timer

	mu      sync.Mutex
	over    bool // the first path's attempt has ended; protected by mu, as all below
	more    bool // it was given more time
	running bool // the others run
}

// yields reports whether the others stay out for now. A first path whose host
// has answered gets more time, and no rival at the same address at all: when a
// thousand ranks start at once a second attempt of each only makes it worse.
func (s *headStart) yields() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return true
	}
	elsewhere := slices.ContainsFunc(s.paths, func(p Path) bool { return p.Remote != s.paths[0].Remote })
	if s.connected.Load() && (!s.more || !elsewhere) {
		s.more = true
		s.timer.Reset(attemptMore)
		return true
	}
	s.running = true
	return false
}

// stop stops the clock and reports whether the others run.
func (s *headStart) stop() bool {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.running
}

// raceOn races paths in goroutines of their own.
func (n *Network) raceOn(ctx context.Context, h *wire.Handle, paths []Path, by Opening) (*Won, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan outcome)
	begun, running := 0, 0
	start := func() {
		p := paths[begun]
		begun, running = begun+1, running+1
		go func() {
			hand := func(r outcome) {
				select {
				case results <- r:
				case <-ctx.Done():
					if r.w != nil {
						r.w.Conn.Close()
					}
				}
			}
			defer task.Rescue(n.log, "connect", func(err error) { hand(outcome{nil, p, err}) })
			w, err := n.Attempt(ctx, h, p, by, nil)
			hand(outcome{w, p, err})
		}()
	}
	next := time.NewTicker(attemptEvery)
	defer next.Stop()
	lost := &lostRace{}
	for running > 0 || begun < len(paths) {
		if running == 0 {
			start()
			next.Reset(attemptEvery)
		}
		select {
		case r := <-results:
			running--
			if r.err == nil || isNarrow(r.err) {
				return r.w, r.err
			}
			lost.lost = append(lost.lost, r)
		case <-next.C:
		case <-ctx.Done():
			lost.cause = context.Cause(ctx)
			return nil, lost
		}
		if begun < len(paths) {
			start()
			next.Reset(attemptEvery)
		}
	}
	return nil, lost
}

// lostAlso puts the first path before the others in the error, if they lost too.
func lostAlso(p Path, err, rest error) error {
	var lost *lostRace
	if rest == nil || !errors.As(rest, &lost) {
		return rest
	}
	lost.lost = append([]outcome{{path: p, err: err}}, lost.lost...)
	return lost
}

// lostRace is why no path led to the listener.
type lostRace struct {
	lost  []outcome
	cause error // of the race itself: out of time, given up, or a defect
}

func (e *lostRace) Error() string {
	var parts []string
	for _, l := range e.lost {
		parts = append(parts, fmt.Sprintf("%s: %v", l.path, Short(l.err)))
	}
	if e.cause != nil {
		parts = append(parts, e.cause.Error())
	}
	return strings.Join(parts, ", ")
}

func (e *lostRace) Unwrap() []error {
	var all []error
	for _, l := range e.lost {
		all = append(all, l.err)
	}
	return append(all, e.cause)
}

// Short is the innermost text of a network error: the addresses are said already.
func Short(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Again reports whether another round may go better: the peer may not listen
// yet or may be flooded, a route may come back.
func Again(err error) bool {
	for _, target := range []error{syscall.ECONNREFUSED, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EAGAIN, syscall.EINTR, syscall.ECONNRESET, syscall.EPIPE, io.EOF, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			return true
		}
	}
	return TimedOut(err)
}

// TimedOut reports whether something did not come in time.
func TimedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
