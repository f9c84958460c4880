package plugin

import (
	"weft/internal/report"
	"weft/internal/version"
	"weft/transport"
	"weft/transport/comms"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// engine is what the plugin needs of the transport; tests bring their own. The
// transport's functions return nil pointers for "not yet", which must not become
// interfaces that are not nil: hence core and the two types below it.
type engine interface {
	Context(o transport.ContextOptions) netContext
	Comm(handle uintptr, side side) (comm, error)
	Listener(handle uintptr) (listener, error)
	Fuse(members []int) (*device.Device, error)
	Unfuse() bool // forgets fused devices, unless they are in use
}

type netContext interface {
	Listen(dev int, handle []byte) (listener, error)
	Connect(dev int, trafficClass int32, handle []byte) (comm, error) // nil, nil: not yet
	Close() error
}

type listener interface {
	owner
	Handle() uintptr
	Accept() (comm, error) // nil, nil: not yet
	Close() error
}

// comm is *comms.Comm.
type comm interface {
	owner
	Handle() uintptr
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

// core is the transport as an engine.
type core struct{ *transport.Core }

func openTransport(c transport.Config) (engine, error) {
	c.Build, c.Code = version.String(), Code
	opened, err := transport.Open(c)
	if err != nil {
		return nil, err
	}
	return core{opened}, nil
}

func (c core) Context(o transport.ContextOptions) netContext {
	o.Cuts = o.Table == tableCuts
	return coreContext{c.NewContext(o)}
}

func (c core) Listener(handle uintptr) (listener, error) {
	return listening(transport.ListenerOf(handle))
}

// Comm finds a comm of the given side; memory calls do not tell which.
func (c core) Comm(handle uintptr, s side) (comm, error) {
	switch s {
	case sendSide:
		return connected(comms.Of(handle, fastpath.Send))
	case recvSide:
		return connected(comms.Of(handle, fastpath.Recv))
	}
	if c, err := comms.Of(handle, fastpath.Send); err == nil {
		return c, nil
	}
	return connected(comms.Of(handle, fastpath.Recv))
}

type coreContext struct{ *transport.Context }

func (x coreContext) Listen(dev int, handle []byte) (listener, error) {
	return listening(x.Context.Listen(dev, handle))
}

func (x coreContext) Connect(dev int, trafficClass int32, handle []byte) (comm, error) {
	return connected(x.Context.Connect(dev, trafficClass, handle))
}

type coreListener struct{ *transport.Listener }

func (l coreListener) Accept() (comm, error) { return connected(l.Listener.Accept()) }

func listening(l *transport.Listener, err error) (listener, error) {
	if err != nil {
		return nil, err
	}
	return coreListener{l}, nil
}

func connected(c *comms.Comm, err error) (comm, error) {
	if c == nil || err != nil {
		return nil, err
	}
	return c, nil
}
