package task

import (
	"runtime/debug"

	"weft/internal/report"
)

// Rescue, deferred at the root of every goroutine and timer, turns its panic
// into an error of ours: a defect in serving one peer must not end the host's
// process. then puts right what the goroutine leaves behind.
func Rescue(log report.Logger, op string, then func(error)) {
	if r := recover(); r != nil {
		then(Panicked(log, op, "", r))
	}
}

// Panicked says what a recovered panic was, on a device if one is named.
func Panicked(log report.Logger, op, dev string, r any) *report.Error {
	err := report.Errorf(report.Internal, op, "panic: %v; %s", r, debug.Stack()).On(dev).
		Try("this is a defect of weft; please report it with this line")
	report.Say(log, err)
	return err
}

// Nobody is told of a panic beyond the log.
func Nobody(error) {}
