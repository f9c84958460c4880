package plugin

import (
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/rdma"
)

// engine is what the plugin needs of the transport; bridge.go fits the real
// one to it, tests bring their own.
type engine interface {
	Context(o contextOptions) netContext
	Comm(handle uintptr, side side) (comm, error)
	Listener(handle uintptr) (listener, error)
	Fuse(members []int) (*device.Device, error)
	Unfuse() bool // forgets fused devices, unless they are in use
}

// contextOptions describe one use of the transport: a communicator, or all of
// a process that shares an old table.
type contextOptions struct {
	Table        int
	CommID       uint64
	TrafficClass int32 // -1: none
	Log          report.Logger
	Hints        func() rdma.Attr
}

type netContext interface {
	Listen(dev int, handle []byte) (listener, error)
	Connect(dev int, trafficClass int32, handle []byte) (comm, error) // nil, nil: not yet
	Close() error
}

type listener interface {
	Handle() uintptr
	owner
	Accept() (comm, error) // nil, nil: not yet
	Close() error
}

type comm interface {
	Handle() uintptr
	owner
	RegMr(address uintptr, size uint64, kind rdma.MemKind) (uintptr, error)
	RegMrDmaBuf(address uintptr, size, offset uint64, fd int, kind rdma.MemKind) (uintptr, error)
	DeregMr(handle uintptr) error
	Close() error
}

// owner says for whom a listener or comm was made: the context's table and log.
type owner interface {
	Table() int
	Log() report.Logger
}

// side is the direction of a comm; close calls name it, memory calls do not.
type side uint8

const (
	anySide side = iota
	sendSide
	recvSide
)
