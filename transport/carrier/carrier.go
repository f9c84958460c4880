package transport

import "weft/transport/session"

// carrier is what moves the bytes of one comm: TCP streams, or queue pairs. What
// only one of them can do is an interface of its own.
type carrier interface {
	// id names the comm to the executor.
	id() uint64
	// open gives c its slab with the lanes attached. When it fails the slab is
	// gone, and what the carrier was made of is the caller's still.
	open(c *Comm) error
	// describe ends the log's line about a new comm; via says how it is reached.
	describe(via string) string
	// shut takes over a closed comm, in the background; busy when requests were
	// outstanding. m may be nil.
	shut(m *session.Member, busy bool)
}

// oneSided is a carrier whose cards read and write the host's memory by themselves.
type oneSided interface {
	// fence ends all that the comm has under way: once it returns, nothing reads
	// or writes the host's memory for it any more. fenceLater does not wait.
	fence()
	fenceLater()
	// drain takes in what has arrived, so that it is done whatever follows.
	drain()
	// left says that the peer has closed its side of c, which is open here.
	left(c *Comm)
}

// streaming is a carrier that goes on without its control connection: its own
// streams say when the peer has left.
type streaming interface {
	// streams is what the kernel says of them.
	streams() streamState
	// forget drops what a closed comm must not look at any more.
	forget()
}

func (c *Comm) fence() {
	if o, is := c.carrier.(oneSided); is {
		o.fence()
	}
}

func (c *Comm) fenceLater() {
	if o, is := c.carrier.(oneSided); is {
		o.fenceLater()
	}
}

func (c *Comm) drain() {
	if o, is := c.carrier.(oneSided); is {
		o.drain()
	}
}

// left is told that the peer has closed its side.
func (c *Comm) left() {
	if o, is := c.carrier.(oneSided); is {
		o.left(c)
	}
}
