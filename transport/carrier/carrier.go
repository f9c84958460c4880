// Package carrier is what a comm and the provider that moves its bytes ask of
// each other. A provider has a Carrier for each comm; what only some can do is
// an interface of its own, found by assertion.
package carrier

import (
	"fmt"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
)

// Carrier moves the bytes of one comm: TCP streams, or queue pairs.
type Carrier interface {
	// ID names the comm to the executor.
	ID() uint64
	// Slab is the comm's, with the lanes attached. When it fails there is none, and
	// what the carrier was made of is the caller's still.
	Slab() (*fastpath.Comm, error)
	// Open says which comm it carries from now on, and fails if it cannot any more.
	Open(c Comm) error
	// Describe ends the log's line about a new comm; via says how it is reached.
	Describe(via string) string
	// Shut takes over a closed comm, in the background; busy when requests were
	// outstanding. m may be nil.
	Shut(m *session.Member, busy bool)
}

// OneSided is a carrier whose cards read and write the host's memory by
// themselves. Without it the CPU must reach all memory.
type OneSided interface {
	// Fence ends all that the comm has under way: once it returns, nothing reads
	// or writes the host's memory for it any more. Spoil says that a fence comes.
	Fence()
	Spoil()
	// Drain takes in what has arrived, so that it is done whatever follows.
	Drain()
	// Left says that the peer has closed its side of the comm, which is open here.
	Left()
}

// Streaming is a carrier that goes on without its control connection: its own
// streams say when the peer has left.
type Streaming interface {
	// Streams is what the kernel says of them.
	Streams() StreamState
	// Forget drops what a closed comm must not look at any more.
	Forget()
	// Cut ends what the kernel still reads in the host's memory for a failed comm.
	Cut()
	// Mute has nothing more leave for a peer that has closed its side.
	Mute()
}

// StreamState is what the kernel says of a comm's streams together.
type StreamState struct {
	Ended  bool   // every stream has had the peer's end
	Unread int    // bytes that wait for our host
	Bytes  uint64 // received so far
	Acked  uint64 // and of ours, taken by the peer's kernel

	Packets uint64 // sent so far
	Again   uint64 // of these, but for those that the peer's kernel had got before
}

// Explaining is a carrier that knows more of some faults than the executor does.
type Explaining interface {
	// Explain puts f into words; err is what it is without that.
	Explain(f *fastpath.Fault, err *report.Error) *report.Error
}

// Wanting is a carrier whose lanes, in the executor, ask it for something now and then.
type Wanting interface {
	// Wants says that they do: for queue pairs, since a flush waits for them, or for a
	// look at how fast small sends follow one another. It waits for no peer and no card.
	Wants()
}

// Comm is what a carrier may ask of the comm that it carries, and tell it.
type Comm interface {
	// Over reports whether nothing more can happen to it.
	Over() bool
	// Fail ends it on both sides.
	Fail(err error)
	// AbortedBy ends it because the peer's host gave it up; Forsaken, with nothing
	// under way, because the peer has closed it in good order, which is no news.
	// They report whether this was the first cause.
	AbortedBy(err *report.Error) bool
	Forsaken(err error) bool
	// Fault judges what the executor met, and returns the host's code.
	Fault(f *fastpath.Fault) int32
	// Carrier is what carries it.
	Carrier() Carrier
	// Member is the comm to its session; nil before it is attached.
	Member() *session.Member
	// Standing is the session of a comm that neither side has closed or given up;
	// nil: there is none.
	Standing() *session.Session
	// Verb is the call that moves its data.
	Verb() string
	// Log speaks to the host that has the comm.
	Log() report.Logger
	// String is the comm in log lines.
	fmt.Stringer
}
