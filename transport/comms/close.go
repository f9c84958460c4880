package comms

import (
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/wire"
)

// Close ends the comm: no request survives it, bytes already handed to the
// kernel still arrive. The streams drain in the background.
func (c *Comm) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return report.Errorf(report.Misuse, "close", "the comm was closed before").On(c.dev.Name).With(c.peer)
	}
	c.closed = true
	m, failed := c.member, c.failed
	c.mu.Unlock()

	if s, is := c.carrier.(carrier.Streaming); is {
		s.Forget()
	}
	fences.Lock()
	requests := c.fp.Snapshot().Outstanding
	busy := requests > 0
	err := c.fp.Close()
	if busy {
		c.fenced.later()
	}
	fences.Unlock()
	if busy {
		c.fenced.fence()
	}
	if busy && failed == nil {
		c.host.Log.Info(report.Net, "close on %s with %s: the host gave up %d request%s in flight, as an abort does", c.dev.Name, c.peer, requests, report.Plural(int(requests)))
	}
	c.sweep()
	comms.Take(c.cookie)
	c.host.Gone(c)
	if m != nil {
		m.Session.TellLater(&wire.Closed{Header: m.Header()})
	}
	if err != nil { // a thread of the host is stuck inside a call: what carries it stays its own
		m.Part()
		return report.Errorf(report.Internal, "close", "%w", err).On(c.dev.Name).With(c.peer)
	}
	if c.meter != nil {
		c.meter.Close(failed != nil)
	}
	c.carrier.Shut(m, busy)
	return nil
}
