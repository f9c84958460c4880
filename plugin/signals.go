package plugin

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// lookForHandlers is how often a host that listens and connects has its handlers looked at: that takes 64 system calls.
const lookForHandlers = 10 * time.Millisecond

// signals has the host's signal handlers run on the signal stack of whichever thread they interrupt.
type signals struct {
	host   host
	told   sync.Map     // those whose handlers lacked SA_ONSTACK
	looked atomic.Int64 // when handlers were looked at last: Unix milliseconds
}

// giveStacksNowAndThen is giveStacks for calls that come by the thousand.
func (s *signals) giveStacksNowAndThen(log report.Logger) {
	now, last := time.Now().UnixMilli(), s.looked.Load()
	if passed := now - last; (passed < 0 || passed >= lookForHandlers.Milliseconds()) && s.looked.CompareAndSwap(last, now) {
		s.giveStacks(log)
	}
}

// giveStacks looks at the handlers, and says once of each signal that its own ran on no such stack.
func (s *signals) giveStacks(log report.Logger) {
	var names []string
	for _, n := range s.host.SignalStacks() {
		if _, told := s.told.LoadOrStore(n, true); !told {
			names = append(names, signalName(n))
		}
	}
	if names != nil {
		log.Info(report.Init, "the host's handlers of %s were installed without SA_ONSTACK: weft added it, since a thread in Go has no stack for them (sigaction(2))",
			strings.Join(names, ", "))
	}
}

func signalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}
