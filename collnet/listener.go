package collnet

import (
	"bytes"

	"weft/internal/report"
	"weft/transport/task"
)

// Listener is one listen of the host: all ranks of one comm connect to it.
type Listener struct {
	ctx    *Context
	dev    int
	door   Door
	handle []byte // as listen wrote it
	id     uint64
}

// listeners are those of the process, whatever number of contexts.
var listeners = task.NewIDs[*Listener](listenerKind << 60)

// ListenerOf finds the listen behind a value that the host gave.
func ListenerOf(handle uintptr) (*Listener, error) {
	if l, ok := listeners.Get(uint64(handle)); ok {
		return l, nil
	}
	return nil, report.Errorf(report.Misuse, "collNet listen comm", "%#x is no open listen: closed already, or not weft's", uint64(handle))
}

// Listen writes the handle by which the other ranks connect.
func (x *Context) Listen(dev int, handle []byte) (*Listener, error) {
	door, err := x.Net.Listen(dev, handle)
	if err != nil {
		return nil, err
	}
	l := &Listener{ctx: x, dev: dev, door: door, handle: bytes.Clone(handle), id: listeners.Reserve()}
	if err := x.own(x.owned.listeners, l); err != nil {
		_ = door.Close()
		return nil, err
	}
	listeners.Put(l.id, l)
	return l, nil
}

// Handle is the value that the host holds.
func (l *Listener) Handle() uintptr { return uintptr(l.id) }

// Table is the version of the table that the host uses.
func (l *Listener) Table() int { return l.ctx.Table }

// Log speaks to the host that has l.
func (l *Listener) Log() report.Logger { return l.ctx.Log }

// Close ends the listen.
func (l *Listener) Close() error {
	if _, mine := listeners.Take(l.id); !mine {
		return report.Errorf(report.Misuse, "collNet.closeListen", "the listen was closed before")
	}
	l.ctx.disown(l)
	return l.door.Close()
}

// agree refuses handles that are not those of the ranks of one comm.
func (l *Listener) agree(handles [][]byte, rank int) error {
	wrong := func(format string, a ...any) error {
		return report.Errorf(report.Misuse, "collNet.connect", format, a...).On(l.ctx.Name(l.dev))
	}
	switch n := len(handles); {
	case n == 0:
		return wrong("a comm of 0 ranks")
	case rank < 0 || rank >= n:
		return wrong("rank %d of %d", rank, n)
	case !bytes.Equal(handles[rank], l.handle):
		return wrong("the handle of rank %d, which calls, is not that of its listen", rank)
	}
	seen := map[string]int{}
	for r, h := range handles {
		if other, twice := seen[string(h)]; twice {
			return wrong("ranks %d and %d have the same handle", other, r)
		}
		seen[string(h)] = r
	}
	return nil
}
