package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// wire is a port between the two ends of a cable, as of a switch: it passes the frames that fit its MTU, both ways, and drops
// the others without a word.
type wire struct {
	mtu  atomic.Int64
	ends [2]net.Conn // towards the machine at each end
	done sync.WaitGroup
}

const (
	etherHeader = 14
	frameBytes  = 68 << 10 // what QEMU sends at most
)

// between puts a port between the ends of a cable, and returns the plugs on its two sides.
func (l *Lab) between(near plugs) (plugs, error) {
	far, err := newPlugs()
	if err != nil {
		return plugs{}, err
	}
	w := &wire{}
	w.mtu.Store(int64(l.config.Between))
	for i, f := range []*os.File{near[1], far[0]} {
		if w.ends[i], err = net.FileConn(f); err != nil {
			return plugs{}, err
		}
		f.Close()
	}
	for i := range w.ends {
		w.done.Go(func() { w.carry(i) })
	}
	l.wires = append(l.wires, w)
	return plugs{near[0], far[1]}, nil
}

// carry passes what one end sends to the other, until the wire is closed.
func (w *wire) carry(from int) {
	frame := make([]byte, frameBytes)
	for {
		n, err := w.ends[from].Read(frame)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || int64(n-etherHeader) > w.mtu.Load() {
			continue
		}
		w.ends[1-from].Write(frame[:n]) // an end that is not there loses it
	}
}

func (w *wire) close() {
	for _, c := range w.ends {
		c.Close()
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
