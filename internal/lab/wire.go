package lab

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// wire is a port between the two ends of a cable, as of a switch: it passes the frames that fit its MTU, both ways, and drops
// the others without a word.
type wire struct {
	mtu     atomic.Int64
	sockets [2]*net.UnixConn // where each end sends to
	ends    [2]*net.UnixAddr // where each end receives
	done    sync.WaitGroup
}

const (
	etherHeader = 14
	frameBytes  = 68 << 10 // what QEMU sends at most
)

// newWire opens the port of a cable. The machines come later: until then, and when one has gone, its frames are lost.
func (l *Lab) newWire(c Cable) (*wire, error) {
	w := &wire{}
	w.mtu.Store(int64(l.config.Between))
	for i := range w.sockets {
		s, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: l.path(wirePlug(c, i)), Net: "unixgram"})
		if err != nil {
			w.close()
			return nil, fmt.Errorf("cable %d: %w", c.Number, err)
		}
		w.sockets[i] = s
		w.ends[i] = &net.UnixAddr{Name: l.path(plug(c, i)), Net: "unixgram"}
	}
	for i := range w.sockets {
		w.done.Go(func() { w.carry(i) })
	}
	return w, nil
}

// carry passes what one end sends to the other, until the wire is closed.
func (w *wire) carry(from int) {
	frame := make([]byte, frameBytes)
	for {
		n, err := w.sockets[from].Read(frame)
		if err != nil {
			return // closed
		}
		if int64(n-etherHeader) > w.mtu.Load() {
			continue
		}
		w.sockets[1-from].WriteTo(frame[:n], w.ends[1-from]) // an end that is not there loses it
	}
}

func (w *wire) close() {
	for _, s := range w.sockets {
		if s != nil {
			s.Close()
			os.Remove(s.LocalAddr().String())
		}
	}
	w.done.Wait()
}

// Narrow gives the port between a cable's ends another MTU: what is larger is dropped from now on. The lab must have been
// booted with such ports (Config.Between).
func (l *Lab) Narrow(c Cable, mtu int) error {
	if len(l.wires) == 0 {
		return fmt.Errorf("cable %d has no port between its ends: Config.Between makes one", c.Number)
	}
	l.wires[c.Number].mtu.Store(int64(mtu))
	return nil
}
