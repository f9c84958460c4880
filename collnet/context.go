package collnet

import (
	"io"
	"maps"
	"sync"
	"time"

	"weft/collnet/choose"
	"weft/internal/report"
)

// Options are what a context of the host brings.
type Options struct {
	Net      Net
	Requests Requests
	Table    int // its version
	Log      report.Logger
	Code     func(err error, table int) int32 // the only place where an error becomes a result code
	Timeout  time.Duration                    // of a connect
	Chunk    int                              // bytes of a chunk; the same on all ranks
	Name     func(dev int) string             // of a device
}

// Context owns what the host made under it and sweeps what the host forgot.
type Context struct {
	Options
	owned struct {
		sync.Mutex
		listeners map[io.Closer]struct{} // protected, as all below
		comms     map[io.Closer]struct{}
		fabric    *choose.Fabric // of the first comm that was connected
		closed    bool
	}
}

// Fabric is what the ranks of the context's first comm have measured, on all of them the same; nil: there was none.
func (x *Context) Fabric() *choose.Fabric {
	x.owned.Lock()
	defer x.owned.Unlock()
	return x.owned.fabric
}

func (x *Context) learn(f choose.Fabric) {
	x.owned.Lock()
	defer x.owned.Unlock()
	if x.owned.fabric == nil {
		x.owned.fabric = &f
	}
}

// NewContext makes a context.
func NewContext(o Options) *Context {
	x := &Context{Options: o}
	x.owned.listeners, x.owned.comms = map[io.Closer]struct{}{}, map[io.Closer]struct{}{}
	return x
}

// Close is finalize: it ends listens and comms that the host never closed.
func (x *Context) Close() error {
	x.owned.Lock()
	x.owned.closed = true
	listeners, comms := maps.Clone(x.owned.listeners), maps.Clone(x.owned.comms)
	x.owned.Unlock()
	if len(listeners)+len(comms) > 0 {
		x.Log.Info(report.Net, "collNet.finalize: closing %d listens and %d comms that were left open", len(listeners), len(comms))
	}
	for l := range listeners {
		_ = l.Close() // a second close by the host may have come first
	}
	for c := range comms {
		_ = c.Close()
	}
	return nil
}

// own records v among all, which are the context's listeners or comms, unless it is closed.
func (x *Context) own(all map[io.Closer]struct{}, v io.Closer) error {
	x.owned.Lock()
	defer x.owned.Unlock()
	if x.owned.closed {
		return report.Errorf(report.Misuse, "collNet", "the context was finalized")
	}
	all[v] = struct{}{}
	return nil
}

func (x *Context) disown(v io.Closer) {
	x.owned.Lock()
	defer x.owned.Unlock()
	delete(x.owned.listeners, v)
	delete(x.owned.comms, v)
}

// Kinds of the handles that a host holds, apart from those of the net core.
const (
	listenerKind = 6
	commKind     = 7
	// RequestKind is that of a request.
	RequestKind = 8
)
