package tcp

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/task"
)

// Reaper ends the streams of closed comms without losing a byte that the
// kernel took: close() on a socket with unread input would reset it, and with it
// what it has not sent yet. So it discards input, writes what the kernel had no room
// for, says that no more will come, and reads to the peer's end. One goroutine serves
// all, and none exists while there is nothing to reap.
type Reaper struct {
	limit time.Duration
	log   report.Logger

	mu      sync.Mutex
	poll    int               // epoll descriptor while running; protected by mu, as all below
	wake    int               // eventfd, to tell the goroutine of newcomers
	streams map[int]*draining // by descriptor
	order   []*draining       // by deadline; entries already gone have fd -1
	running bool
	others  int    // comms that end without streams
	lost    []Rest // what had no room until the deadline, and is not told of yet
	sink    []byte // where discarded bytes go; not on a stack, which would have to grow
}

// Rest is what small sends of a closed comm have left behind, which were done for the host.
type Rest struct {
	Bytes        []byte
	Device, Peer string // between which the comm was
}

// draining is one stream; the last of its comm frees the executor's slab.
type draining struct {
	fd       int
	rest     Rest // still to be written
	deadline time.Time
	owner    *drainingComm
}

type drainingComm struct {
	fp   *fastpath.Comm
	left int
}

// NewReaper returns one that gives every stream so much time.
func NewReaper(limit time.Duration, log report.Logger) *Reaper {
	return &Reaper{limit: limit, log: log, poll: -1, wake: -1, streams: map[int]*draining{}, sink: make([]byte, 16<<10)}
}

// Add takes over the descriptors of a closed comm; rest is still to be written to the first.
func (r *Reaper) Add(fds []int, rest Rest, fp *fastpath.Comm) {
	owner := &drainingComm{fp: fp}
	deadline := time.Now().Add(r.limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, fd := range fds {
		if r.drain(fd) {
			fastpath.CloseFD(fd)
			continue
		}
		d := &draining{fd: fd, deadline: deadline, owner: owner}
		if i == 0 {
			d.rest = rest
		}
		events := uint32(unix.EPOLLIN | unix.EPOLLRDHUP)
		if !d.write() {
			events |= unix.EPOLLOUT
		}
		if !r.start() || r.add(fd, events) != nil {
			fastpath.CloseFD(fd) // out of descriptors: better a reset than a leak
			continue
		}
		owner.left++
		r.streams[fd] = d
		r.order = append(r.order, d)
	}
	if owner.left == 0 {
		fp.Free()
	}
	fastpath.SetReaping(len(r.streams) + r.others)
	if r.running {
		unix.Write(r.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// Lingers counts comms that end elsewhere: process exit waits for them too.
func (r *Reaper) Lingers(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others += n
	fastpath.SetReaping(len(r.streams) + r.others)
}

// start makes sure that the goroutine runs. Called with mu held.
func (r *Reaper) start() bool {
	if r.running {
		return true
	}
	var err error
	if r.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return false
	}
	if r.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(r.poll)
		return false
	}
	fastpath.TrackFD(r.poll)
	fastpath.TrackFD(r.wake)
	r.add(r.wake, unix.EPOLLIN)
	r.running = true
	go r.run()
	return true
}

func (r *Reaper) add(fd int, events uint32) error {
	return unix.EpollCtl(r.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// write writes the rest, and then says that no more will come. It reports whether
// that is done, or the stream has failed.
func (d *draining) write() bool {
	for len(d.rest.Bytes) > 0 {
		n, err := unix.SendmsgN(d.fd, d.rest.Bytes, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
			return false
		case err != nil:
			d.rest.Bytes = nil
		default:
			d.rest.Bytes = d.rest.Bytes[n:]
		}
	}
	unix.Shutdown(d.fd, unix.SHUT_WR)
	return true
}

// run reaps until nothing is left.
func (r *Reaper) run() {
	defer task.Rescue(r.log, "close", func(error) { r.giveUp() })
	events := make([]unix.EpollEvent, 128)
	for {
		wait, lost, more := r.due()
		for _, l := range lost { // not under the lock: a log may stand still
			report.Say(r.log, report.Errorf(report.Peer, "close", "%d bytes of small sends did not leave, which were done for the host: the peer has not read for %v since", len(l.Bytes), r.limit).
				On(l.Device).With(l.Peer).Try("look at the peer's log; WEFT_TIMEOUT gives it longer"))
		}
		if !more {
			return
		}
		n, err := unix.EpollWait(r.poll, events, int(wait/time.Millisecond)+1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			n = 0
		}
		r.reap(events[:max(n, 0)])
	}
}

// due closes what has had its time and returns how long until the next, and what that
// lost; more is false when nothing is left.
func (r *Reaper) due() (wait time.Duration, lost []Rest, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = r.expire(time.Now())
	if len(r.streams) == 0 {
		r.stop()
	}
	lost, r.lost = r.lost, nil
	return wait, lost, r.running
}

// stop forgets the goroutine. Called with mu held.
func (r *Reaper) stop() {
	r.running = false
	fastpath.CloseFD(r.poll)
	fastpath.CloseFD(r.wake)
}

// reap reads what epoll told of.
func (r *Reaper) reap(events []unix.EpollEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if int(e.Fd) == r.wake {
			var b [8]byte
			unix.Read(r.wake, b[:])
			continue
		}
		d := r.streams[int(e.Fd)]
		if d == nil {
			continue
		}
		if len(d.rest.Bytes) > 0 && d.write() {
			unix.EpollCtl(r.poll, unix.EPOLL_CTL_MOD, d.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(d.fd)})
		}
		if r.drain(d.fd) {
			r.finish(d)
		}
	}
	fastpath.SetReaping(len(r.streams) + r.others)
}

// giveUp closes everything at once, after a defect: a new goroutine serves
// what comes later.
func (r *Reaper) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.streams {
		r.finish(d)
	}
	r.order = nil
	fastpath.SetReaping(r.others)
	r.stop()
}

// expire closes what has had its time and returns how long until the next.
// Called with mu held.
func (r *Reaper) expire(now time.Time) time.Duration {
	for len(r.order) > 0 {
		d := r.order[0]
		if d.fd >= 0 && now.Before(d.deadline) {
			return d.deadline.Sub(now)
		}
		r.order[0] = nil
		r.order = r.order[1:]
		if d.fd >= 0 {
			if len(d.rest.Bytes) > 0 {
				r.lost = append(r.lost, d.rest)
			}
			r.finish(d)
		}
	}
	fastpath.SetReaping(len(r.streams) + r.others)
	return 0
}

// finish closes d. Called with mu held.
func (r *Reaper) finish(d *draining) {
	delete(r.streams, d.fd)
	fastpath.CloseFD(d.fd)
	d.fd = -1
	d.owner.left--
	if d.owner.left == 0 {
		d.owner.fp.Free()
	}
}

// drain discards what has arrived and reports whether the peer's end, or an
// error, is behind it. What one call reads is bounded: epoll tells of the rest. Called with mu held.
func (r *Reaper) drain(fd int) bool {
	for range 64 {
		n, err := unix.Read(fd, r.sink)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return false
		case errors.Is(err, syscall.EINTR):
		case err != nil || n == 0:
			return true
		}
	}
	return false
}
