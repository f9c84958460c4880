package event

import (
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// reader waits for a card's events without a thread of its own: its copy of
// the card's descriptor is in Go's poller.
type reader struct {
	card *card.Card
	file *os.File
	conn syscall.RawConn
	fd   int
	done chan struct{}

	stopped atomic.Bool // before the descriptor is closed, which ends the wait with an error that has no name
}

// newReader has a copy of a card's descriptor; nil: the library has none.
func newReader(c *card.Card) (*reader, error) {
	asyncFD := c.AsyncFD()
	if asyncFD < 0 {
		return nil, nil
	}
	broken := func(what string, err error) error {
		return report.Errorf(report.Host, "read events", "%s descriptor %d: %w", what, asyncFD, err).On(c.Name)
	}
	fd, err := unix.FcntlInt(uintptr(asyncFD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, broken("copy", err)
	}
	if err := fastpath.TrackFD(fd); err != nil {
		unix.Close(fd)
		return nil, broken("track", err)
	}
	r := &reader{card: c, fd: fd, done: make(chan struct{})}
	if err = unix.SetNonblock(fd, true); err == nil { // both descriptors are one open file
		r.file = os.NewFile(uintptr(fd), c.Name+" events")
		r.conn, err = r.file.SyscallConn()
	}
	if err != nil {
		fastpath.UntrackFD(fd)
		if r.file != nil {
			r.file.Close()
		} else {
			unix.Close(fd)
		}
		return nil, broken("poll", err)
	}
	return r, nil
}

// start has handle called with every event, one at a time, until stop. unheard is
// told where that ends in a panic.
func (r *reader) start(handle func(ibv.AsyncEvent), unheard func(*report.Error)) {
	c := r.card
	go func() {
		defer close(r.done)
		defer c.Rescue("read events", unheard)
		err := r.conn.Read(func(uintptr) bool { return r.drain(handle) })
		if err != nil && !r.stopped.Load() {
			c.Lib.Log.Warn("%v", report.Errorf(report.Host, "read events", "%w", err).On(c.Name).
				Try("events of this device are not seen any more; errors then show only when data fails"))
		}
	}()
}

// drain handles all events that are there; true ends the reading.
func (r *reader) drain(handle func(ibv.AsyncEvent)) bool {
	c := r.card
	for {
		raw, errno := c.Lib.GetAsyncEvent(c.Context())
		switch errno {
		case 0:
			handle(raw)
		case syscall.EAGAIN:
			return false
		case syscall.EINTR:
		default:
			report.Say(c.Lib.Log, fail.Call("ibv_get_async_event", c.Name, errno, "events of this device are not seen any more"))
			return true
		}
	}
}

// stop ends the reading and waits until no event is being handled; it must not be
// called from a subscriber. There may be no reader.
func (r *reader) stop() {
	if r == nil {
		return
	}
	fastpath.UntrackFD(r.fd)
	r.stopped.Store(true)
	r.file.Close()
	<-r.done
}
