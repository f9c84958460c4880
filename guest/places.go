package guest

/*
#include "guest.h"
*/
import "C"

import "time"

// Places bound how many of Go's threads are inside code that is not ours, where a call may take long and holds its thread: the
// kept threads (GUEST_THREADS) are for all of these, and for those that run Go meanwhile. The host's threads are its own, and need
// no place.
type Places chan struct{}

// The places that there are.
var (
	VerbsPlaces = make(Places, 12) // calls of libibverbs, which the kernel and the card may hold up
	LogPlaces   = make(Places, 4)  // calls of the host's log function, whose output may be stuck
)

// Take waits for a place, as the call behind it may wait for the kernel: the deadline is that of the operation which calls. The
// caller gives the place back when its call has returned.
func (p Places) Take() (give func()) {
	if !ofGo() {
		return nothing
	}
	p <- struct{}{}
	return p.give
}

// TakeWithin is Take with a deadline; nil: there was no place.
func (p Places) TakeWithin(limit time.Duration) (give func()) {
	if !ofGo() {
		return nothing
	}
	return p.take(limit)
}

func (p Places) take(limit time.Duration) (give func()) {
	select {
	case p <- struct{}{}:
		return p.give
	default:
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case p <- struct{}{}:
		return p.give
	case <-t.C:
		return nil
	}
}

func (p Places) give() { <-p }

func nothing() {}

// ofGo tells whether the calling thread is Go's. A goroutine that runs on one of the host's stays there until it returns to it.
func ofGo() bool { return C.weft_thread_of_go() != 0 }
