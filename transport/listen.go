package transport

import (
	"crypto/rand"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

// Listen opens a listen on device dev and writes its handle: 64 or 128 bytes.
func (x *Context) Listen(dev int, handle []byte) (*Listener, error) {
	d, err := x.devices.Get("listen", dev)
	if err != nil {
		return nil, err
	}
	if len(handle) < wire.HandleMin {
		return nil, report.Errorf(report.Internal, "listen", "handle buffer of %d bytes", len(handle)).On(d.Name)
	}
	for _, w := range x.ways {
		if err := w.Listen(d); err != nil {
			return nil, err
		}
	}
	l := &Listener{ctx: x, dev: d, setup: map[setup]struct{}{}}
	l.reach = rendezvous.Listen{ID: wire.Random64(), Device: d.Name, Interfaces: d.Interfaces(), Fresh: l.fresh, Proven: l.proven}
	rand.Read(l.reach.Token[:])
	size := min(len(handle), wire.HandleMax)
	eps, err := x.sockets.Open(&l.reach, size)
	if err != nil {
		return nil, err
	}
	h := wire.Handle{Origin: x.net.Origin, Token: l.reach.Token, ListenID: l.reach.ID, Addrs: eps}.Named(x.host, size)
	clear(handle[:size])
	copy(handle, h.Append(nil))
	listeners.Add(func(id uint64) *Listener { l.handle = id; return l })
	l.wait().Begin() // nobody has the token yet
	if !own(x, x.owned.listeners, asking(l), struct{}{}) {
		l.Close()
		return nil, errFinalized("listen")
	}
	return l, nil
}
