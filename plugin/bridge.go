package plugin

import (
	"weft/internal/report"
	"weft/internal/version"
	"weft/transport"
	"weft/transport/device"
	"weft/transport/fastpath"
)

// The transport as an engine. Its functions answer typed nils for "not yet",
// which must not become interfaces that are not nil.

type bridge struct{ core *transport.Core }

func openTransport(o engineOptions) (engine, error) {
	core, err := transport.Open(transport.Config{
		Knobs: o.Knobs, Log: o.Log, Devices: o.Devices, Interfaces: o.Interfaces, Verbs: o.Verbs, NoVerbs: o.NoVerbs, Build: version.String(),
		Code: func(err error, table int) int32 { return Code(err, table) },
	})
	if err != nil {
		return nil, err
	}
	return bridge{core}, nil
}

func (b bridge) Context(o contextOptions) netContext {
	return bridgeContext{b.core.NewContext(transport.ContextOptions{
		ABI: o.Table, Cuts: o.Table == tableCuts, CommID: o.CommID, TrafficClass: o.TrafficClass, Log: o.Log, Hints: o.Hints})}
}

func (b bridge) Listener(handle uintptr) (listener, error) {
	l, err := transport.ListenerOf(handle)
	if err != nil {
		return nil, err
	}
	return bridgeListener{l}, nil
}

func (b bridge) Fuse(members []int) (*device.Device, error) { return b.core.Fuse(members) }
func (b bridge) Unfuse() bool                               { return b.core.Unfuse() }

// Comm finds a comm of the given side; memory calls do not tell which.
func (b bridge) Comm(handle uintptr, s side) (comm, error) {
	switch s {
	case sendSide:
		return wrap(transport.CommOf(handle, fastpath.Send))
	case recvSide:
		return wrap(transport.CommOf(handle, fastpath.Recv))
	}
	if c, err := transport.CommOf(handle, fastpath.Send); err == nil {
		return bridgeComm{c}, nil
	}
	return wrap(transport.CommOf(handle, fastpath.Recv))
}

type bridgeContext struct{ *transport.Context }

func (x bridgeContext) Listen(dev int, handle []byte) (listener, error) {
	l, err := x.Context.Listen(dev, handle)
	if err != nil {
		return nil, err
	}
	return bridgeListener{l}, nil
}

func (x bridgeContext) Connect(dev int, trafficClass int32, handle []byte) (comm, error) {
	return wrap(x.Context.Connect(dev, trafficClass, handle))
}

type bridgeListener struct{ *transport.Listener }

func (l bridgeListener) Table() int         { return l.Context().ABI() }
func (l bridgeListener) Log() report.Logger { return l.Context().Log() }

func (l bridgeListener) Accept() (comm, error) { return wrap(l.Listener.Accept()) }

type bridgeComm struct{ *transport.Comm }

func (c bridgeComm) Table() int         { return c.Context().ABI() }
func (c bridgeComm) Log() report.Logger { return c.Context().Log() }

func wrap(c *transport.Comm, err error) (comm, error) {
	if c == nil || err != nil {
		return nil, err
	}
	return bridgeComm{c}, nil
}
