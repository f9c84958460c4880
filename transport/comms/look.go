package comms

import (
	"strings"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
)

// What the stall monitor sees of a comm.

// Sends tells the direction.
func (c *Comm) Sends() bool { return c.kind == fastpath.Send }

// Look is how far c has come.
func (c *Comm) Look() fastpath.Look { return c.fp.Look() }

// Progress grows with what the kernel, or the cards, move within a message.
func (c *Comm) Progress() (moved uint64) {
	if s, is := c.carrier.(carrier.Streaming); is {
		st := s.Streams()
		return st.Bytes + st.Acked
	}
	for _, l := range c.fp.LaneStates(nil) {
		moved += uint64(l.Completed)
	}
	return moved
}

// Sent is how many packets the kernel has sent for c, and how many of them again.
func (c *Comm) Sent() (packets, again uint64) {
	if s, is := c.carrier.(carrier.Streaming); is {
		st := s.Streams()
		return st.Packets, st.Again
	}
	return 0, 0
}

// Broken reports whether c has failed, and the host has not closed it yet.
func (c *Comm) Broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed != nil && !c.closed && !c.unsaid
}

// OutOfUse says why c's own device cannot be used now; empty: it can.
func (c *Comm) OutOfUse() string { return strings.Join(c.dev.OutOfUse(), ", ") }

// Devices are c's own and the peer's.
func (c *Comm) Devices() (own, peer string) {
	return c.dev.Name, rendezvous.EndDevice(c.peer)
}

// Cabled reports whether cards move its bytes.
func (c *Comm) Cabled() bool {
	_, cards := c.carrier.(carrier.OneSided)
	return cards
}

// Peer names the other side.
func (c *Comm) Peer() string { return c.peer }

// Why is what ended c, nil while nothing has.
func (c *Comm) Why() error { return c.failure() }
