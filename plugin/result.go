package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"weft/abi"
	"weft/internal/report"
)

// ncclResult_t. ncclInvalidArgument (4) is not among them: NCCL takes it for a
// mistake in its own call and says nothing of the cause.
const (
	resultSuccess       = 0
	resultCudaError     = 1
	resultSystemError   = 2
	resultInternalError = 3
	resultInvalidUsage  = 5
	resultRemoteError   = 6
)

// Code is the only place where an error becomes an ncclResult_t. table is the
// version of the table that asked; 0 when the call does not tell.
func Code(err error, table int) int32 {
	if err == nil {
		return resultSuccess
	}
	switch report.CauseOf(err) {
	case report.Peer, report.Network:
		if table != 0 && table < tableRemote {
			return resultSystemError
		}
		return resultRemoteError
	case report.Host:
		return resultSystemError
	case report.Usage:
		return resultInvalidUsage
	case report.Cuda:
		return resultCudaError
	}
	return resultInternalError
}

// tableError says on whose behalf an error happened.
type tableError struct {
	error
	table int
	log   report.Logger
}

func (e *tableError) Unwrap() error { return e.error }

// done ends an exported call: it says the error once and returns its code.
func done(call string, err error) int32 { return theProcess.done(call, err) }

func (p *process) done(call string, err error) int32 {
	if err == nil {
		return resultSuccess
	}
	table, log := 0, p.log
	var t *tableError
	if errors.As(err, &t) {
		table, log = t.table, t.log
	}
	err = classified(call, err)
	report.Say(log, err)
	return Code(err, table)
}

// classified gives an error without a cause the one that fits, and a place.
func classified(call string, err error) error {
	var e *report.Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, abi.ErrUnsupported):
		return report.Errorf(report.Unsupported, call, "%w", abi.ErrUnsupported)
	}
	return report.Errorf(report.Internal, call, "%w", err)
}

// recovered ends an exported call that panicked. A panic that left it would
// end the host.
func recovered(call string, r any) int32 { return theProcess.recovered(call, r) }

func (p *process) recovered(call string, r any) (code int32) {
	code = resultInternalError
	// Saying so may be what panics: then the code alone must do.
	defer func() { _ = recover() }()
	p.log.Warn("%s: internal error, please report it: %v; at %s", call, r, stack())
	return code
}

// stack is where the panic began, on one line and short enough for NCCL's
// buffer of 1024 bytes.
func stack() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var parts []string
	length := 0
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			part := fmt.Sprintf("%s (%s:%d)", strings.TrimPrefix(f.Function, "weft/"), file, f.Line)
			if length += len(part); length > 700 {
				break
			}
			parts = append(parts, part)
		}
		if !more {
			break
		}
	}
	return strings.Join(parts, " < ")
}
