package plugin

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// giveSignalStacks has the host's signal handlers run on the signal stack of whichever thread they interrupt, and says once of each
// signal that it was not so.
func (p *process) giveSignalStacks(log report.Logger) {
	var names []string
	for _, n := range p.host.SignalStacks() {
		if _, told := p.signalsTold.LoadOrStore(n, true); !told {
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
