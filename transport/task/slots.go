package task

import (
	"context"
	"runtime"
	"time"
)

// Slots bounds the handshakes that run at once on one side of this process. A
// thousand that start together end no sooner for running together; they only
// make the Go scheduler start a thread for each that is inside a system call.
type Slots struct{ taken chan struct{} }

// slotLimit ends a handshake's claim to its slot: it waits for the network then.
const slotLimit = 200 * time.Millisecond

// NewSlots returns slots for eight handshakes a processor, at least 32. A thousand
// connects at once on two cores take 1.06 times as long with 16 or 128 in all, and 1.2
// times with 6.
func NewSlots() *Slots { return &Slots{make(chan struct{}, max(32, 8*runtime.GOMAXPROCS(0)))} }

// Enter waits for a slot. The caller leaves it once, at the latest when its
// handshake ends; it is free for others sooner if that takes long.
func (s *Slots) Enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.taken <- struct{}{}:
		return s.entered(), nil
	case <-ctx.Done():
		return func() {}, context.Cause(ctx)
	}
}

// Try is Enter for who does not wait; false: no slot is free.
func (s *Slots) Try() (leave func(), free bool) {
	select {
	case s.taken <- struct{}{}:
		return s.entered(), true
	default:
		return func() {}, false
	}
}

func (s *Slots) entered() (leave func()) {
	t := time.AfterFunc(slotLimit, func() { <-s.taken })
	return func() {
		if t.Stop() {
			<-s.taken
		}
	}
}

// Busy returns how many slots are taken.
func (s *Slots) Busy() int { return len(s.taken) }
