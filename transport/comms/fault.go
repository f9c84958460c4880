package comms

import (
	"errors"
	"strings"
	"syscall"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/wire"
)

// Fault judges what the executor met on c: it logs, records the first cause and
// returns the host's code. It runs on the host's thread and waits for nothing, but
// a moment for the peer's word where its stream has ended.
func (c *Comm) Fault(f *fastpath.Fault) int32 {
	switch f.Kind {
	case fastpath.FaultTooLarge:
		err := report.Errorf(report.Usage, "isend", "%d bytes do not fit the peer's receive of %d (group %d, entry %d)", f.Got, f.Want, f.Seq, f.Entry).
			On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was sent")
		report.Say(c.host.Log, err)
		c.tell(func(h wire.Header) session.Frame {
			return &wire.Refused{Header: h, Seq: f.Seq, Entry: f.Entry, Size: f.Got, Room: f.Want}
		})
		return c.code(err)
	case fastpath.FaultAhead: // the peer comes to the same by itself
		err := report.Errorf(report.Usage, c.Verb(), "a message of %d bytes does not fit its receive of %d (group %d, entry %d)", f.Got, f.Want, f.Seq, f.Entry).
			On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was written")
		report.Say(c.host.Log, err)
		return c.code(err)
	case fastpath.FaultEnded:
		return c.asked()
	case fastpath.FaultHandle, fastpath.FaultArgument, fastpath.FaultMR: // this call only
		err := describe(f, f.Call, c.dev.Name, c.peer)
		report.Say(c.host.Log, err)
		return c.code(err)
	}
	err := describe(f, c.Verb(), c.dev.Name, c.peer)
	if e, is := c.carrier.(carrier.Explaining); is {
		err = e.Explain(f, err)
	}
	if f.Kind == fastpath.FaultPeerClosed {
		if why, again := c.lastWord(); why != nil {
			if err = why; again {
				report.Mention(c.host.Log, err)
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
	peer := failure
	if f.Kind == fastpath.FaultPeerClosed {
		peer = nothing
	}
	c.because(err, peer)
	return c.code(err)
}

// describe puts a fault into words.
func describe(f *fastpath.Fault, op, dev, peer string) *report.Error {
	var e *report.Error
	switch f.Kind {
	case fastpath.FaultPeerClosed:
		e = report.Errorf(report.Peer, op, "the peer closed stream %d", f.Got).
			Try("its process ended, or closed the connection first; look at its log")
	case fastpath.FaultSocket:
		e = report.Errorf(socketCause(f.Errno), op, "%s on stream %d: %w", f.Where, f.Got, f.Errno)
		if e.Cause == report.Peer {
			e.Remedy = "the peer's process ended or was killed; look at its log"
		} else {
			e.Remedy = "the network to the peer failed; look at the link and at the peer's log"
		}
	case fastpath.FaultProtocol:
		e = report.Errorf(report.Peer, op, "the peer sent what it must not: %s, expected %d, got %d", f.Where, f.Want, f.Got).
			Try("both hosts must run the same weft")
	case fastpath.FaultHandle:
		e = report.Errorf(report.Misuse, op, "%s: %#x is stale, closed or not weft's", f.Where, f.Got)
	case fastpath.FaultArgument:
		e = report.Errorf(report.Misuse, op, "%s: got %d", f.Where, int64(f.Got))
	case fastpath.FaultNull:
		e = report.Errorf(report.Misuse, op, "%s is NULL", f.Where)
	case fastpath.FaultMR:
		e = report.Errorf(report.Misuse, op, "%d bytes at %#x cannot be used: %s", f.Want, f.Got, f.Where)
		if strings.Contains(f.Where, "CPU") {
			e.Remedy = "set NCCL_NET_GDR_LEVEL=LOC and NCCL stages GPU memory through the host's; the line of the connection says why it is not over RDMA"
			e.Rules = "WEFT-080"
		}
	case fastpath.FaultHeld:
		e = report.Errorf(report.Host, f.Where, "another thread's call on this connection has not returned for %d s", f.Want).
			Try("a thread of the host is stopped inside it, by a debugger or a signal: look at the threads of this process")
	case fastpath.FaultThreads:
		e = report.Errorf(report.Host, op, "no memory for one more calling thread: thousands call weft at once, or the process's memory is used up").
			Try("end threads of the host, or raise its limit of memory (ulimit -v)")
	default:
		e = report.Errorf(report.Internal, op, "%s (kind %d, errno %d, expected %d, got %d)", f.Where, f.Kind, int(f.Errno), f.Want, f.Got).
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
