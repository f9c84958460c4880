package transport

import "weft/transport/session"

// carrier is what moves the bytes of one comm: TCP streams, or queue pairs.
type carrier interface {
	// id names the comm to the executor.
	id() uint64
	// open gives c its slab with the lanes attached. When it fails the slab is
	// gone, and what the carrier was made of is the caller's still.
	open(c *Comm) error
	// describe ends the log's line about a new comm; via says how it is reached.
	describe(via string) string
	// fence ends all that the comm has under way: once it returns, nothing reads
	// or writes the host's memory for it any more. fenceLater does not wait.
	fence()
	fenceLater()
	// drain takes in what has arrived, so that it is done whatever follows.
	drain()
	// streams is what the kernel says of a comm that goes on without its control
	// connection; false for a carrier that does not.
	streams() (streamState, bool)
	// forget drops what a closed comm must not look at any more.
	forget()
	// shut takes over a closed comm, in the background; busy when requests were
	// outstanding. m may be nil.
	shut(m *session.Member, busy bool)
	// left says that the peer has closed its side of c, which is open here.
	left(c *Comm)
}
