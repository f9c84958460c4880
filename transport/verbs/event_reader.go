package verbs

import (
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
)

// eventReader waits for a card's events without a thread of its own: its copy of
// the card's descriptor is in Go's poller.
type eventReader struct {
	file *os.File
	fd   int
	done chan struct{}

	stopped atomic.Bool // before the descriptor is closed, which ends the wait with an error that has no name
}

// startReading begins to read events. A library without a descriptor for
// them has none.
func (a *adapter) startReading() error {
	asyncFD := a.asyncFD
	if asyncFD < 0 {
		return nil
	}
	broken := func(what string, err error) error {
		return report.Errorf(report.Host, "read events", "%s descriptor %d: %w", what, asyncFD, err).On(a.name)
	}
	fd, err := unix.FcntlInt(uintptr(asyncFD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return broken("copy", err)
	}
	if err := fastpath.TrackFD(fd); err != nil {
		unix.Close(fd)
		return broken("track", err)
	}
	r := &eventReader{fd: fd, done: make(chan struct{})}
	if err = unix.SetNonblock(fd, true); err == nil { // both descriptors are one open file
		r.file = os.NewFile(uintptr(fd), a.name+" events")
		err = a.readWith(r)
	}
	if err != nil {
		fastpath.UntrackFD(fd)
		if r.file != nil {
			r.file.Close()
		} else {
			unix.Close(fd)
		}
		return broken("poll", err)
	}
	return nil
}

func (a *adapter) readWith(r *eventReader) error {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	a.reader = r
	go func() {
		defer close(r.done)
		defer a.rescue("read events", a.unheard)
		err := conn.Read(func(uintptr) bool { return a.drain() })
		if err != nil && !r.stopped.Load() {
			a.p.log.Warn("%v", report.Errorf(report.Host, "read events", "%w", err).On(a.name).
				Try("events of this device are not seen any more; errors then show only when data fails"))
		}
	}()
	return nil
}

// drain handles all events that are there; true ends the reading.
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

// stopReading ends that and waits until no event is being handled. It
// must not be called from a subscriber.
func (a *adapter) stopReading() {
	r := a.reader
	if r == nil {
		return
	}
	a.reader = nil
	fastpath.UntrackFD(r.fd)
	r.stopped.Store(true)
	r.file.Close()
	<-r.done
}
