package transport

import (
	"errors"
	"strings"
	"syscall"

	"weft/internal/report"
	"weft/transport/session"
	"weft/transport/wire"
)

// fault is struct wf_fault, as the executor raised it.
type fault struct {
	kind      uint32
	errno     syscall.Errno
	entry     uint32
	lane      uint32
	seq       uint64
	want, got uint64
	where     string
	call      string // of the host
}

// fault judges what the executor met on c: it logs, records the first cause and
// answers the host's code. It runs on the host's thread and waits for nothing, but
// a moment for the peer's word where its stream has ended.
func (c *Comm) fault(f *fault) int32 {
	switch f.kind {
	case faultTooLarge:
		err := report.Errorf(report.Usage, "isend", "%d bytes do not fit the peer's receive of %d (group %d, entry %d)", f.got, f.want, f.seq, f.entry).
			On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was sent")
		report.Say(c.ctx.opts.Log, err)
		c.tell(func(h wire.Header) session.Frame {
			return &wire.Refused{Header: h, Seq: f.seq, Entry: f.entry, Size: f.got, Room: f.want}
		})
		return c.code(err)
	case faultAhead: // the peer comes to the same by itself
		err := report.Errorf(report.Usage, c.verb(), "a message of %d bytes does not fit its receive of %d (group %d, entry %d)", f.got, f.want, f.seq, f.entry).
			On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was written")
		report.Say(c.ctx.opts.Log, err)
		return c.code(err)
	case faultEnded:
		return c.asked()
	case faultHandle, faultArgument, faultMR: // this call only
		err := f.describe(f.call, c.dev.Name, c.peer)
		report.Say(c.ctx.opts.Log, err)
		return c.code(err)
	}
	err := f.describe(c.verb(), c.dev.Name, c.peer)
	v, overVerbs := c.carrier.(*verbsCarrier)
	if overVerbs {
		err = v.explain(f, err)
	}
	if f.kind == faultPeerClosed {
		if why, again := c.lastWord(); why != nil {
			if err = why; again {
				report.Mention(c.ctx.opts.Log, err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return c.code(c.failed)
	}
	if c.suspect != nil && err.Cause == report.Peer {
		err.Remedy = "its control connection had ended as well: " + c.suspect.Err.Error() + "; " + c.suspect.Remedy
	}
	c.because(err, f.kind != faultPeerClosed)
	return c.code(err)
}

// verb is the call that moves c's data.
func (c *Comm) verb() string {
	if c.op() == "connect" {
		return "isend"
	}
	return "irecv"
}

// describe puts a fault into words.
func (f *fault) describe(op, dev, peer string) *report.Error {
	var e *report.Error
	switch f.kind {
	case faultPeerClosed:
		e = report.Errorf(report.Peer, op, "the peer closed stream %d", f.got).
			Try("its process ended, or closed the connection first; look at its log")
	case faultSocket:
		e = report.Errorf(socketCause(f.errno), op, "%s on stream %d: %w", f.where, f.got, f.errno)
		if e.Cause == report.Peer {
			e.Remedy = "the peer's process ended or was killed; look at its log"
		} else {
			e.Remedy = "the network to the peer failed; look at the link and at the peer's log"
		}
	case faultProtocol:
		e = report.Errorf(report.Peer, op, "the peer sent what it must not: %s, expected %d, got %d", f.where, f.want, f.got).
			Try("both hosts must run the same weft")
	case faultHandle:
		e = report.Errorf(report.Misuse, op, "%s: %#x is stale, closed or not weft's", f.where, f.got)
	case faultArgument:
		e = report.Errorf(report.Misuse, op, "%s: got %d", f.where, int64(f.got))
	case faultNull:
		e = report.Errorf(report.Misuse, op, "%s is NULL", f.where)
	case faultMR:
		e = report.Errorf(report.Misuse, op, "%d bytes at %#x cannot be used: %s", f.want, f.got, f.where)
		if strings.Contains(f.where, "CPU") {
			e.Remedy = "set NCCL_NET_GDR_LEVEL=LOC and NCCL stages GPU memory through the host's; the line of the connection says why it is not over RDMA"
		}
	case faultHeld:
		e = report.Errorf(report.Host, f.where, "another thread's call on this connection has not returned for %d s", f.want).
			Try("a thread of the host is stopped inside it, by a debugger or a signal: look at the threads of this process")
	case faultThreads:
		e = report.Errorf(report.Host, op, "no memory for one more calling thread: thousands call weft at once, or the process's memory is used up").
			Try("end threads of the host, or raise its limit of memory (ulimit -v)")
	default:
		e = report.Errorf(report.Internal, op, "%s (kind %d, errno %d, expected %d, got %d)", f.where, f.kind, int(f.errno), f.want, f.got).
			Try("this is a defect of weft; please report it with this line")
	}
	return e.On(dev).With(peer)
}

func socketCause(errno syscall.Errno) report.Cause {
	switch {
	case errors.Is(errno, syscall.ECONNRESET), errors.Is(errno, syscall.EPIPE):
		return report.Peer
	case errors.Is(errno, syscall.ENOMEM), errors.Is(errno, syscall.ENOBUFS), errors.Is(errno, syscall.EFAULT):
		return report.Host
	}
	return report.Network
}
