package verbs

import (
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
)

// watcher waits for a card's events without a thread of its own: its copy of
// the card's descriptor is in Go's poller.
type watcher struct {
	file *os.File
	fd   int
	done chan struct{}

	stopped atomic.Bool // before the descriptor is closed, which ends the wait with an error that has no name
}

// startWatching begins to read events. A library without a descriptor for
// them has none.
func (a *adapter) startWatching() error {
	asyncFD := a.asyncFD
	if asyncFD < 0 {
		return nil
	}
	broken := func(what string, err error) error {
		return report.Errorf(report.Host, "watch events", "%s descriptor %d: %w", what, asyncFD, err).On(a.name)
	}
	fd, err := unix.FcntlInt(uintptr(asyncFD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return broken("copy", err)
	}
	if err := fastpath.TrackFD(fd); err != nil {
		unix.Close(fd)
		return broken("track", err)
	}
	w := &watcher{fd: fd, done: make(chan struct{})}
	if err = unix.SetNonblock(fd, true); err == nil { // both descriptors are one open file
		w.file = os.NewFile(uintptr(fd), a.name+" events")
		err = a.watchWith(w)
	}
	if err != nil {
		fastpath.UntrackFD(fd)
		if w.file != nil {
			w.file.Close()
		} else {
			unix.Close(fd)
		}
		return broken("poll", err)
	}
	return nil
}

func (a *adapter) watchWith(w *watcher) error {
	conn, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	a.watch = w
	go func() {
		defer close(w.done)
		defer a.rescue("watch events", a.unwatched)
		err := conn.Read(func(uintptr) bool { return a.drain() })
		if err != nil && !w.stopped.Load() {
			a.p.log.Warn("%v", report.Errorf(report.Host, "watch events", "%w", err).On(a.name).
				Try("events of this device are not seen any more; errors then show only when data fails"))
		}
	}()
	return nil
}

// drain handles all events that are there; true ends the watch.
func (a *adapter) drain() bool {
	for {
		raw, errno := a.p.lib.GetAsyncEvent(a.context)
		switch errno {
		case 0:
			a.handle(raw)
		case syscall.EAGAIN:
			return false
		case syscall.EINTR:
		default:
			report.Say(a.p.log, fail("ibv_get_async_event", a.name, errno, "events of this device are not seen any more"))
			return true
		}
	}
}

// stopWatching ends the watch and waits until no event is being handled. It
// must not be called from a subscriber.
func (a *adapter) stopWatching() {
	w := a.watch
	if w == nil {
		return
	}
	a.watch = nil
	fastpath.UntrackFD(w.fd)
	w.stopped.Store(true)
	w.file.Close()
	<-w.done
}
