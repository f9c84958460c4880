package collnet

import (
	"time"

	"golang.org/x/sys/unix"
)

// How those wait who move bytes with their own thread.
const (
	spin    = 20 * time.Microsecond // without anything to do, before a nap
	nap     = 20 * time.Microsecond // between two looks at what is in flight
	glance  = 5 * time.Microsecond  // between two yields while a path is measured
	tick    = time.Millisecond      // between two looks at whether the host's thread works
	longest = 8 * tick              // the same, where each look has found that it does
)

// naps are those that may be under way in the kernel: each takes one of the few threads that there are.
var naps = make(chan struct{}, 3)

// yield lets others run who wait for this core: a nap, however short, takes longer than the path that is measured
// meanwhile. From Linux 6.18 on each yield can cost the thread a slice, hence a glance between two, and a tick in all.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// doze is a nap; one of Go's own timers takes a millisecond.
func doze() {
	select {
	case naps <- struct{}{}:
		t := unix.NsecToTimespec(int64(nap))
		_ = unix.Nanosleep(&t, nil) // a signal ends it early
		<-naps
	default:
		time.Sleep(nap)
	}
}
