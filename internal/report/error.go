package report

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// Error is a failure as a person needs it: what was tried, on which device,
// with whom, what came of it and what to do about it.
type Error struct {
	Op     string // the operation: "connect", "regMr"
	Dev    string // the device's name, if one was involved
	Peer   string // the other side, if there is one: host, address, pair
	Cause  Cause
	Err    error  // what happened, with the values
	Remedy string // what the reader can do; a full clause, no full stop
	Rules  string // of weft doctor that look into it, "WEFT-070" or several: weft doctor --explain tells more

	said atomic.Bool
}

// Errorf makes an Error whose Err is formatted (%w wraps).
func Errorf(cause Cause, op, format string, a ...any) *Error {
	return &Error{Op: op, Cause: cause, Err: fmt.Errorf(format, a...)}
}

// On names the device.
func (e *Error) On(dev string) *Error { e.Dev = dev; return e }

// With names the other side.
func (e *Error) With(peer string) *Error { e.Peer = peer; return e }

// Try sets the remedy.
func (e *Error) Try(format string, a ...any) *Error {
	e.Remedy = fmt.Sprintf(format, a...)
	return e
}

// See names the doctor's rules that look into it.
func (e *Error) See(rules string) *Error { e.Rules = rules; return e }

// Told marks e as said already: Say is silent about it.
func (e *Error) Told() *Error { e.said.Store(true); return e }

// Unwrap gives errors.Is and errors.As the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Error is one line, whatever the parts contain: the host's log is line based.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Dev != "" {
		b.WriteString(" on " + e.Dev)
	}
	if e.Peer != "" {
		b.WriteString(" with " + e.Peer)
	}
	b.WriteString(": ")
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(e.Cause.String() + " error")
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	if e.Rules != "" {
		b.WriteString(" [" + e.Rules + "]")
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(b.String())
}

// CauseOf is the cause of the outermost Error in err's chain; an error that
// nobody classified counts as a fault of weft.
func CauseOf(err error) Cause {
	var e *Error
	if errors.As(err, &e) {
		return e.Cause
	}
	return Internal
}

// Say logs err as one WARN. An Error is said once, however many calls return
// it afterwards: every later call on a failed comm returns the same value.
func Say(log Logger, err error) {
	if err != nil && first(err) {
		log.Warn("%v", err)
	}
}

// Mention is Say for what is no failure here: one INFO line.
func Mention(log Logger, err error) {
	if err != nil && first(err) {
		log.Info(Net, "%v", err)
	}
}

func first(err error) bool {
	var e *Error
	return !errors.As(err, &e) || !e.said.Swap(true)
}
