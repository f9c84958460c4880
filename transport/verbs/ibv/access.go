package ibv

// Access is what a registration, or a queue pair, lets others do.
type Access uint32

const (
	LocalWrite  Access = 1 << 0
	RemoteWrite Access = 1 << 1
	RemoteRead  Access = 1 << 2

	RelaxedOrdering Access = 1 << 20

	// AccessData is for buffers of messages: a peer's writes, and the loopback
	// READ of a flush. AccessCTS is for the ring that peers write CTS lines to.
	AccessData = LocalWrite | RemoteWrite | RemoteRead
	AccessCTS  = LocalWrite | RemoteWrite
)
