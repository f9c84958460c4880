package meter

/*
#include "meter.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/transport/meter/format"
)

// End is what is known of one end of a connection.
type End struct {
	Flags      uint32 // as those of the recorder's Link
	Number     uint64 // which both ends know
	Device     string
	Peer       string // its host
	PeerPID    uint32
	PeerDevice string
}

// Link is a connection that is counted.
type Link struct{ place *C.struct_weft_meter_place }

// Add gives a connection a place; nil: nothing is counted, or there is none, which is
// counted and said.
func Add(e End) *Link {
	process.mu.Lock()
	defer process.mu.Unlock()
	f := process.file
	if f == nil {
		return nil
	}
	p := free(f)
	if p == nil {
		if f.uncounted == 0 {
			process.log.Warn("metrics: %d connections have taken every place of %s: those that follow are not counted", format.Places, process.path)
		}
		atomic.AddUint64((*uint64)(&f.uncounted), 1)
		return nil
	}
	p.flags, p.number, p.peer_pid, p.lanes = C.uint32_t(e.Flags), C.uint64_t(e.Number), C.uint32_t(e.PeerPID), 0
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		p.opened = C.uint64_t(now.Nano())
	}
	for field, text := range map[*[format.TextLen]C.char]string{&p.device: e.Device, &p.peer: e.Peer, &p.peer_device: e.PeerDevice} {
		*field = [format.TextLen]C.char{}
		for i := range min(len(text), format.TextLen-1) {
			field[i] = C.char(text[i])
		}
	}
	setState(p, format.Connection)
	return &Link{p}
}

// free finds a place that nobody has, and makes it empty.
func free(f *C.struct_weft_meter_file) *C.struct_weft_meter_place {
	for i := range f.place {
		p := &f.place[i]
		if p.state != format.Free {
			continue
		}
		if i >= int(f.used) {
			atomic.StoreUint32((*uint32)(&f.used), uint32(i)+1)
		}
		p.since = 0
		for i := range sums(p) {
			atomic.StoreUint64(&sums(p)[i], 0)
		}
		return p
	}
	return nil
}

// Place is where the connection is counted (struct weft_meter_place).
func (l *Link) Place() uintptr { return uintptr(unsafe.Pointer(l.place)) }

// Close says that nobody counts any more, and whether the connection had failed. What
// it has counted is added to the total of those between the same ends; without one it
// becomes that.
func (l *Link) Close(failed bool) {
	process.mu.Lock()
	defer process.mu.Unlock()
	f, p := process.file, l.place
	atomic.AddUint64((*uint64)(&f.turns), 1)
	defer atomic.AddUint64((*uint64)(&f.turns), 1)
	p.closed = 1
	if failed {
		p.broken = 1
	}
	p.begun = p.messages + p.failed // no others are under way
	for i := range f.place[:f.used] {
		if to := &f.place[i]; to.state == format.Total && same(to, p) {
			for i, n := range sums(p) {
				atomic.AddUint64(&sums(to)[i], n)
			}
			setState(p, format.Free)
			return
		}
	}
	p.number, p.lanes = 0, 0
	atomic.StoreUint64((*uint64)(&p.since), 0)
	setState(p, format.Total)
}

// same reports whether a and b are between the same ends, in the same way.
func same(a, b *C.struct_weft_meter_place) bool {
	return a.flags == b.flags && a.peer_pid == b.peer_pid && a.device == b.device && a.peer == b.peer && a.peer_device == b.peer_device
}

func setState(p *C.struct_weft_meter_place, state uint32) {
	atomic.StoreUint32((*uint32)(&p.state), state)
}

const sumWords = (format.PlaceBytes - format.OffSums) / 8

// sums are the words of a place that are added when places are moved together.
func sums(p *C.struct_weft_meter_place) *[sumWords]uint64 {
	return (*[sumWords]uint64)(unsafe.Add(unsafe.Pointer(p), format.OffSums))
}
