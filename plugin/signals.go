package plugin

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// lookForHandlers is how often a host that listens and connects has its handlers looked at: that takes 64 system calls.
const lookForHandlers = 10 * time.Millisecond

// giveSignalStacksNowAndThen is giveSignalStacks for calls that come by the thousand.
func (p *process) giveSignalStacksNowAndThen(log report.Logger) {
	now, last := time.Now().UnixMilli(), p.signals.looked.Load()
	if passed := now - last; (passed < 0 || passed >= lookForHandlers.Milliseconds()) && p.signals.looked.CompareAndSwap(last, now) {
		p.giveSignalStacks(log)
	}
}

// giveSignalStacks has the host's signal handlers run on the signal stack of whichever thread they interrupt, and says once of each
// signal that it was not so.
func (p *process) giveSignalStacks(log report.Logger) {
	var names []string
	for _, n := range p.host.SignalStacks() {
		if _, told := p.signals.told.LoadOrStore(n, true); !told {
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
