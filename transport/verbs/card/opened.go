package card

import (
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// opened is a device as the library has opened it.
type opened struct {
	context ibv.Object
	asyncFD int
	fds     []int // what a forked child must not keep; nothing else may be done with a context there
}

// open opens a device of the list.
func open(l *Library, e *ibv.DeviceEntry) (o opened, err error) {
	context, cmdFD, asyncFD, errno := l.OpenDevice(e.Device)
	if errno != 0 {
		return o, fail.Call("ibv_open_device", e.Name, errno, "")
	}
	o = opened{context: context, asyncFD: asyncFD}
	for _, fd := range []int{cmdFD, asyncFD} {
		if fd < 0 {
			continue
		}
		if err := fastpath.TrackFD(fd); err != nil {
			o.close(l, e.Name)
			return opened{}, report.Errorf(report.Host, "ibv_open_device", "%w", err).On(e.Name)
		}
		o.fds = append(o.fds, fd)
	}
	return o, nil
}

// close is for a device on which nothing is left.
func (o *opened) close(l *Library, name string) {
	for _, fd := range o.fds {
		fastpath.UntrackFD(fd)
	}
	if errno := l.CloseDevice(o.context); errno != 0 {
		l.Log.Warn("%v", fail.Call("ibv_close_device", name, errno, ""))
	}
}
