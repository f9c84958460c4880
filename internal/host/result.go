package host

import (
	"errors"
	"fmt"
	"strings"
)

// Result is ncclResult_t, or HostError when the plugin was not reached.
type Result int

// The codes a plugin may return, with NCCL's names.
const (
	Success            Result = 0
	UnhandledCudaError Result = 1
	SystemError        Result = 2
	InternalError      Result = 3
	InvalidArgument    Result = 4
	InvalidUsage       Result = 5
	RemoteError        Result = 6
	HostError          Result = -1
)

// String is NCCL's name of the code.
func (r Result) String() string {
	switch r {
	case Success:
		return "ncclSuccess"
	case UnhandledCudaError:
		return "ncclUnhandledCudaError"
	case SystemError:
		return "ncclSystemError"
	case InternalError:
		return "ncclInternalError"
	case InvalidArgument:
		return "ncclInvalidArgument"
	case InvalidUsage:
		return "ncclInvalidUsage"
	case RemoteError:
		return "ncclRemoteError"
	case HostError:
		return "host error"
	}
	return fmt.Sprintf("ncclResult %d", int(r))
}

// ResultError is a plugin call that did not return ncclSuccess.
type ResultError struct {
	Call string // the command, such as net.listen
	Slot string // the call inside a loop of the host, such as irecv
	Code Result
	Log  []LogLine // what the plugin logged at WARN during the call
}

func (e *ResultError) Error() string {
	var b strings.Builder
	b.WriteString(e.Call)
	if e.Slot != "" {
		fmt.Fprintf(&b, " (%s)", e.Slot)
	}
	fmt.Fprintf(&b, ": %v", e.Code)
	for _, l := range e.Log {
		b.WriteString(": ")
		b.WriteString(l.Text)
	}
	return b.String()
}

// CommandError is a command that the host could not carry out.
type CommandError struct {
	Call string
	Word string // usage, noslot, nolib, nomem, deadline, fault
	Msg  string
}

func (e *CommandError) Error() string { return e.Call + ": " + e.Word + ": " + e.Msg }

// Code tells what a call returned: Success for nil, the plugin's code, or
// HostError when the error is not the plugin's answer.
func Code(err error) Result {
	if err == nil {
		return Success
	}
	var re *ResultError
	if errors.As(err, &re) {
		return re.Code
	}
	return HostError
}

// NoSlot tells whether the table has no such function.
func NoSlot(err error) bool { return word(err) == "noslot" }

// TimedOut tells whether a loop inside the host reached its limit.
func TimedOut(err error) bool { return word(err) == "deadline" }

func word(err error) string {
	var ce *CommandError
	if errors.As(err, &ce) {
		return ce.Word
	}
	return ""
}
