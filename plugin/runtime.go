package plugin

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

const (
	leastProcs  = 4         // with fewer, a call into Go waits milliseconds when two threads enter at once
	mostProcs   = 8         // each is a thread, of which guest keeps a fixed number
	gcPercent   = 400       // connections are long-lived: collect a quarter as often as Go would
	memoryLimit = 512 << 20 // of the Go heap; the process belongs to the host
)

// tuneRuntime sets what a guest in another process needs. The Go runtime is
// ours alone, yet a variable that the user set for it counts.
func tuneRuntime(h host, log report.Logger) {
	unset := func(name string) bool { v, ok := h.Getenv(name); return !ok || v == "" }
	has := runtime.GOMAXPROCS(0)
	if want := min(max(has, leastProcs), mostProcs); want != has && unset("GOMAXPROCS") {
		runtime.GOMAXPROCS(want)
		log.Trace(report.Init, "Go may use %d threads at once instead of %d", want, has)
	}
	if unset("GOGC") {
		debug.SetGCPercent(gcPercent)
	}
	if unset("GOMEMLIMIT") {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// restoreFiles undoes what package syscall did to the soft limit of open files
// while Go started: it set it to the hard limit less one. Only that: a host
// that has set the limit since is left alone.
func restoreFiles(soft, hard uint64, get func() (unix.Rlimit, error), set func(unix.Rlimit) error) {
	if soft == 0 || soft+1 >= hard {
		return
	}
	now, err := get()
	if err != nil || now.Cur != hard-1 || now.Max != hard {
		return
	}
	now.Cur = soft
	// A failure leaves a limit that is too high: nothing that this host, or we, would trip over now.
	_ = set(now)
}
