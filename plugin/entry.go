package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/internal/report"
)

// Where the calls of hosts come in: whose they are, and how each ends. Only what C calls knows theProcess.

var theProcess = newProcess(cHost{})

func netImpl() abi.Net { return theProcess }

func collImpl() abi.CollNet { return collective{process: theProcess} }

func profImpl() abi.Profiler { return &theProcess.profiler }

func tuneImpl() abi.Tuner { return &theProcess.tuner }

func init() {
	soft, hard := theProcess.host.Files()
	restoreFiles(soft, hard, func() (l unix.Rlimit, err error) {
		err = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
		return l, err
	}, func(l unix.Rlimit) error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &l) })
}

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
