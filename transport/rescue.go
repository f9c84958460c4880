package transport

import (
	"runtime/debug"

	"weft/internal/report"
)

// rescue, deferred at the root of every goroutine and timer, turns its panic
// into an error of ours: a defect in serving one peer must not end the host's
// process. then puts right what the goroutine leaves behind.
func rescue(log report.Logger, op string, then func(error)) {
	r := recover()
	if r == nil {
		return
	}
	then(panicked(log, op, r))
}

// panicked says what a recovered panic was.
func panicked(log report.Logger, op string, r any) error {
	err := report.Errorf(report.Internal, op, "panic: %v; %s", r, debug.Stack()).
		Try("this is a defect of weft; please report it with this line")
	report.Say(log, err)
	return err
}

// nobody is told of a panic beyond the log.
func nobody(error) {}
