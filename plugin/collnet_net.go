package plugin

import (
	"weft/collnet"
	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/fastpath"
)

// collNet is a context of the net core as collectives run over it.
type collNet struct{ net netContext }

// aside is the log of connections that are a collective's: what ends them is no warning of its own, for the collective warns
// once, for all of them.
type aside struct{ report.Logger }

// Informs is that of the log itself.
func (l aside) Informs() bool { return report.Informs(l.Logger) }

func (l aside) Warn(format string, a ...any) { l.Info(report.Net, format, a...) }

func (n collNet) Listen(dev int, handle []byte) (collnet.Door, error) {
	l, err := n.net.Listen(dev, handle)
	if err != nil {
		return nil, err
	}
	return door{l}, nil
}

func (n collNet) Connect(dev int, handle []byte) (collnet.Link, error) {
	return linked(n.net.Connect(dev, -1, handle))
}

type door struct{ listener }

func (d door) Accept() (collnet.Link, error) { return linked(d.listener.Accept()) }

func linked(c comm, err error) (collnet.Link, error) {
	if c == nil || err != nil {
		return nil, err
	}
	return link{c.(*comms.Comm)}, nil
}

// link is a comm whose host is the plugin itself.
type link struct{ *comms.Comm }

func (l link) Send(b collnet.Buffer, tag int32) (uintptr, error) {
	request, code := fastpath.Isend(l.Handle(), b.Address, b.Size, tag, b.Handle)
	return request, l.failed("isend", code)
}

func (l link) Receive(b collnet.Buffer, tag int32) (uintptr, error) {
	request, code := fastpath.Irecv(l.Handle(), b.Address, b.Size, tag, b.Handle)
	return request, l.failed("irecv", code)
}

func (l link) Test(request uintptr) (bool, int, error) {
	done, size, code := fastpath.Test(request)
	return done, size, l.failed("test", code)
}

// failed is the error behind a code that the executor returned.
func (l link) failed(call string, code int32) error {
	if code == 0 {
		return nil
	}
	if err := l.Why(); err != nil {
		return err
	}
	return report.Errorf(report.Internal, call, "result %d, of which the line before tells", code)
}
