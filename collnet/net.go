package collnet

import "weft/transport/rdma"

// Net is what collectives run over.
type Net interface {
	// Listen writes the handle by which others connect.
	Listen(dev int, handle []byte) (Door, error)
	// Connect is asked again with the same handle, in which it keeps its state; nil, nil: not yet.
	Connect(dev int, handle []byte) (Link, error)
}

// Door is a listen of the net.
type Door interface {
	Accept() (Link, error) // nil, nil: not yet
	Close() error
}

// Link is one direction of one connection. Messages are received in the order in which they are sent. Memory that is
// registered on one link of a device serves all links of it.
type Link interface {
	Send(b Buffer, tag int32) (request uintptr, err error)    // 0: not yet
	Receive(b Buffer, tag int32) (request uintptr, err error) // 0: not yet
	Test(request uintptr) (done bool, size int, err error)
	RegMr(address uintptr, size uint64, kind rdma.MemKind) (uintptr, error)
	RegMrDmaBuf(address uintptr, size, offset uint64, fd int, kind rdma.MemKind) (uintptr, error)
	DeregMr(handle uintptr) error
	Cabled() bool // RDMA carries it
	Peer() string
	Fail(why error)   // the peer hears why
	GiveUp(why error) // the same, where the host gave the comm up: the peer hears that this was no failure
	Close() error
}

// Buffer is registered memory.
type Buffer struct {
	Address uintptr
	Size    int
	Handle  uintptr // of its registration
}

// Requests are the words that the host's test looks at, in blocks of MaxRequests. Of one that is pending it calls Help first,
// unless the block awaits requests of the net: groups of them, 0 behind each, and others behind the last. Then it looks at
// them all, and calls Help once a group is done, or any of them has failed.
type Requests interface {
	Open(comm uintptr) (block int, err error) // of the comm with that handle
	Take(block int) (request uintptr)         // 0: all are in use
	Done(request uintptr, size int)
	Fail(request uintptr, code int32)
	Await(block int, groups []uintptr) // none: test always calls Help
	Looked(block int) bool             // test has found since the last call that all groups wait
	Close(block int)                   // test knows none of the block any more
}

// MaxRequests is how many requests of a comm there may be at a time.
const MaxRequests = 32

// MaxAwaited is how many requests of the net, and ends of groups, test looks at by itself.
const MaxAwaited = 64
