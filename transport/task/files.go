package task

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// FileLimit raises the process's soft limit of open files, only when it was
// hit and only as far as connections need.
type FileLimit struct{ mu sync.Mutex }

// Exhausted reports whether err says that this process has no descriptor left.
func Exhausted(err error) bool { return errors.Is(err, syscall.EMFILE) }

// Raise makes room after exhausted and reports whether to try again.
func (f *FileLimit) Raise(log report.Logger) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil || lim.Cur >= lim.Max {
		return false
	}
	old := lim.Cur
	lim.Cur = min(lim.Max, max(old*2, 1024))
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return false
	}
	log.Info(report.Init, "raised the limit of open files from %d to %d (hard limit %d): connections needed more", old, lim.Cur, lim.Max)
	return true
}

// NeedFiles makes sure that n more files can be opened, raising the soft limit if
// that helps. Go's poller ends the process when it gets no descriptor, so this
// comes before anything that uses it.
func NeedFiles(n int, log report.Logger) error {
	var limit FileLimit
	held := make([]int, 0, n)
	defer func() {
		for _, fd := range held {
			unix.Close(fd)
		}
	}()
	for len(held) < n {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			held = append(held, fd)
		case Exhausted(err) && limit.Raise(log):
		case Exhausted(err):
			return NoFiles("init", err)
		default:
			return nil // no /dev/null says nothing about descriptors
		}
	}
	return nil
}

// NoFiles is the error for a limit that cannot be raised.
func NoFiles(op string, err error) *report.Error {
	var lim unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &lim)
	return report.Errorf(report.Host, op, "no file descriptor left, the limit is %d: %w", lim.Cur, err).
		Try("raise it: ulimit -n, LimitNOFILE= of systemd, nofile of /etc/security/limits.conf, --ulimit nofile of docker").See("WEFT-071 WEFT-150")
}
