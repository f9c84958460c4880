package plugin

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/report"
)

// NCCL's subsystems; none ever changed its value.
const (
	flagInit = 1 << 0
	flagNet  = 1 << 4
	flagEnv  = 1 << 7
	flagAll  = ^uint64(0)
)

const prefix = "NET/weft : "

// voice is one log function that a host gave to an init, as long as it can be
// called: its module may be unloaded while this library stays.
type voice struct {
	call     atomic.Pointer[function]
	table    int
	speaking sync.RWMutex // read: a call of the function is under way
}

type function struct {
	address uintptr
	origin  module // zero: in no module (a callback made at run time); then it is trusted
	levels  levels
}

// voices are the log functions in use, oldest first. What belongs to no
// context (the control connection, the reaper) is said through the first that lives.
type voices struct {
	host  host
	quiet atomic.Bool // the host prints no INFO lines; then they are not even formatted
	trace atomic.Bool // the host prints TRACE lines; otherwise they are not even formatted

	forced atomic.Pointer[levels] // by the user; nil: those of each host

	mu  sync.Mutex
	all []*voice // protected by mu
}

// force takes the user's word for it: a value of WEFT_LOG_LEVELS, empty where it is not set.
func (v *voices) force(name string) {
	switch name {
	case "nccl":
		v.forced.Store(&ncclLevels)
	case "ncclx", "rccl":
		v.forced.Store(&errorLevels)
	}
}

func (v *voices) add(fn uintptr, table int) *voice {
	infos, traces := prints(v.host)
	v.quiet.Store(!infos)
	v.trace.Store(traces)
	w := &voice{table: table}
	v.replace(w, fn)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, w)
	return w
}

// silence bounds drop's wait. It passes in vain when the function does not
// return: its output is stuck, or it is itself what had the host end the context.
const silence = 2 * time.Second

// drop silences w, whose module may be unloaded afterwards: it waits for the
// calls that are under way.
func (v *voices) drop(w *voice) {
	w.call.Store(&function{})
	v.mu.Lock()
	v.all = slices.DeleteFunc(v.all, func(o *voice) bool { return o == w })
	v.mu.Unlock()
	// Never Lock: those who speak from within the function would wait for it.
	for deadline := time.Now().Add(silence); !w.speaking.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return
		}
	}
	w.speaking.Unlock()
}

// replace gives w another log function, after its own went away.
func (v *voices) replace(w *voice, address uintptr) {
	f := &function{address: address}
	if address != 0 {
		f.origin = v.host.Module(address)
	}
	f.levels = levelsOf(v.host, address)
	w.call.Store(f)
}

// alive reports whether w's function may still be called.
func (v *voices) alive(w *voice) bool { return v.function(w) != nil }

// function is w's, nil if there is none or its module is gone.
func (v *voices) function(w *voice) *function {
	if w == nil {
		return nil
	}
	f := w.call.Load()
	if f.address == 0 || f.origin != (module{}) && v.host.Module(f.address) != f.origin {
		return nil
	}
	return f
}

// pick is own if it can speak, else the first that can. The caller ends its
// speaking; nil: nobody can.
func (v *voices) pick(own *voice) (w *voice, fn *function) {
	if fn := v.begin(own); fn != nil {
		return own, fn
	}
	v.mu.Lock()
	all := slices.Clone(v.all)
	v.mu.Unlock()
	for _, w := range all {
		if fn := v.begin(w); fn != nil {
			return w, fn
		}
	}
	return nil, nil
}

// begin is w's function, for one call that drop waits for; nil: it cannot speak.
func (v *voices) begin(w *voice) *function {
	if w == nil {
		return nil
	}
	w.speaking.RLock()
	fn := v.function(w)
	if fn == nil {
		w.speaking.RUnlock()
	}
	return fn
}

// logger speaks through own, or for the process when own is nil.
type logger struct {
	voices *voices
	own    *voice
}

// hostLog is the log of a call by a profiler's or tuner's host, which may have no network of
// ours; drop ends it.
func (v *voices) hostLog(logfn uintptr) (log logger, drop func()) {
	log = logger{voices: v}
	if logfn == 0 {
		return log, func() {}
	}
	log.own = v.add(logfn, tableContext)
	return log, func() { v.drop(log.own) }
}

func (l logger) Warn(format string, a ...any) {
	l.say(warn, nil, format, a...)
}

func (l logger) Info(sub report.Subsys, format string, a ...any) {
	if l.Informs() {
		l.say(info, &sub, format, a...)
	}
}

// Informs reports whether anybody sees an INFO line.
func (l logger) Informs() bool { return !l.voices.quiet.Load() }

func (l logger) Trace(sub report.Subsys, format string, a ...any) {
	if l.voices.trace.Load() {
		l.say(trace, &sub, format, a...)
	}
}

func (l logger) say(s severity, sub *report.Subsys, format string, a ...any) {
	w, fn := l.voices.pick(l.own)
	if w == nil {
		return
	}
	defer w.speaking.RUnlock()
	flags := flagAll // a warning shows whatever NCCL_DEBUG_SUBSYS says, as NCCL's own do
	if sub != nil {
		flags = flagsOf(*sub, w.table)
	}
	file, line := caller()
	number := fn.levels
	if forced := l.voices.forced.Load(); forced != nil {
		number = *forced
	}
	l.voices.host.Log(fn.address, number[s], flags, file, line, prefix+oneLine.Replace(fmt.Sprintf(format, a...)))
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ")

// flagsOf translates a subsystem. The releases behind tables 2 and 3 (up to
// 2.7) mostly have no NCCL_ENV; what only it would carry is lost there.
func flagsOf(sub report.Subsys, table int) uint64 {
	switch sub {
	case report.Init:
		return flagInit | flagNet
	case report.Env:
		if table <= 3 {
			return flagInit | flagEnv
		}
		return flagEnv
	}
	return flagNet
}

// silent are the functions that speak for others; a line names the place that called them.
var silent = []string{"weft/plugin.logger.", "weft/plugin.aside.", "weft/internal/report.", "weft/plugin.done", "weft/plugin.(*process).done", "weft/plugin.(*process).fail"}

// caller is the place that had something to say: an error that a call returned
// is said by the exported function.
func caller() (file string, line int) {
	var pcs [16]uintptr
	for n := 4; n <= len(pcs); n *= 4 { // most lines are said at once, and every frame costs
		frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:n])])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if !slices.ContainsFunc(silent, func(p string) bool { return strings.HasPrefix(f.Function, p) }) {
				return filepath.Base(f.File), f.Line
			}
		}
	}
	return "weft", 0
}
