package fastpath

/*
#include "fastpath.h"
*/
import "C"

import (
	"fmt"
	"time"
)

// holdDeadline bounds the wait for a thread that is inside a call; calls are bounded, so only a stopped thread takes long. A
// flush that meets the gate gives up a second later (late.c).
const holdDeadline = 10 * time.Second

// HoldError says that a thread did not leave a call on the comm in time.
type HoldError struct{ Comm *Comm }

func (e *HoldError) Error() string {
	return fmt.Sprintf("fastpath: hold %v: a thread of the host has been inside a call on it for %v; is that thread stopped?", e.Comm, holdDeadline)
}

// Hold shuts the comm's gate: from its return to Release no thread is inside isend, irecv or test on it, and new calls
// return "not yet"; a flush returns a request that begins later.
func (c *Comm) Hold() error { return holdAll([]*Comm{c}) }

// Release opens the gate again.
func (c *Comm) Release() {
	C.wf_hold_end(c.c)
	c.gate.Unlock()
}

// TryHold is Hold that waits for nothing: false if a thread of the host is inside a call on the comm, or another goroutine has
// the gate.
func (c *Comm) TryHold() bool {
	if !c.gate.TryLock() {
		return false
	}
	if C.wf_hold_try(c.c) == 0 {
		c.gate.Unlock()
		return false
	}
	C.wf_barrier()
	if C.wf_hold_clear(c.c) == 0 {
		c.Release()
		return false
	}
	return true
}

// holdAll holds every comm, with one barrier for all, or none. The comms are in the order of their index.
func holdAll(comms []*Comm) error {
	deadline := time.Now().Add(holdDeadline)
	for i, c := range comms {
		c.gate.Lock()
		if !until(deadline, func() bool { return C.wf_hold_try(c.c) != 0 }) { // a thread takes the comm over
			c.gate.Unlock()
			releaseAll(comms[:i])
			return &HoldError{c}
		}
	}
	C.wf_barrier()
	for _, c := range comms {
		if !until(deadline, func() bool { return C.wf_hold_clear(c.c) != 0 }) {
			releaseAll(comms)
			return &HoldError{c}
		}
	}
	return nil
}

func releaseAll(comms []*Comm) {
	for _, c := range comms {
		c.Release()
	}
}

// until polls ok until it holds or the deadline has passed.
func until(deadline time.Time, ok func() bool) bool {
	for pause := time.Microsecond; !ok(); pause = min(2*pause, time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
