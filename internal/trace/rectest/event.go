package rectest

import (
	"encoding/binary"

	"weft/transport/record/format"
)

// Start writes the beginning of an event of the profiler and returns its ID.
func (t *Thread) Start(typ uint8, at uint64, r format.Record) uint64 {
	r.Kind, r.Type, r.Time = format.Start, typ, at
	return (uint64(typ)+1)<<format.TypeShift | t.Put(r)
}

// State writes that an event has entered one.
func (t *Thread) State(id, at uint64, number uint32, a uint64) {
	t.Put(format.Record{Kind: format.State, Type: format.IDType(id), Time: at, ID: id, Flags: number, A: a})
}

// Stop writes the end of an event.
func (t *Thread) Stop(id, at uint64) {
	t.Put(format.Record{Kind: format.Stop, Type: format.IDType(id), Time: at, ID: id})
}

// CommEnd writes that a communicator was destroyed.
func (t *Thread) CommEnd(at uint64) { t.Put(format.Record{Kind: format.CommEnd, Time: at}) }

// Link writes a connection. network is 1 for TCP, 2 for RDMA.
func (t *Thread) Link(at, handle uint64, sends bool, network uint32, number uint64, device, peer string, comm uint64) {
	t.Put(format.Record{
		Kind: format.Link, Time: at, ID: handle, Flags: direction(sends) | network<<8, A: number,
		B: t.f.Name(device) | t.f.Name(peer)<<32, C: comm,
	})
}

// Message writes the beginning of a request, with the tags of its entries, and returns its ID.
func (t *Thread) Message(at, handle uint64, sends bool, group, bytes uint64, tags ...uint64) uint64 {
	r := format.Record{Kind: format.Message, Time: at, Parent: handle, Flags: direction(sends) | uint32(len(tags))<<8, A: group, B: bytes, C: tags[0]}
	for i, tag := range tags {
		if len(tags) > 1 {
			r.More[i/2] |= tag << (i % 2 * 32)
		}
	}
	return t.Put(r)
}

// MessageEnd writes the end of one.
func (t *Thread) MessageEnd(at, id, group, bytes, entry uint64) {
	t.Put(format.Record{Kind: format.MessageEnd, Time: at, ID: id, A: group, B: bytes, C: entry})
}

// Said writes what the process said of a stall, in parts.
func (t *Thread) Said(at, number uint64, text string) {
	for part := uint32(0); text != ""; part++ {
		var b [format.SaidBytes]byte
		text = text[copy(b[:], text):]
		r := format.Record{Kind: format.Said, Time: at, ID: number, Flags: part}
		for i := range r.More {
			r.More[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		t.Put(r)
	}
}

// RunDelay writes a window that ends at a time, in which a thread waited for a core.
func (t *Thread) RunDelay(at, window, delay uint64) {
	t.Put(format.Record{Kind: format.RunDelay, Time: at, A: window, B: delay})
}

func direction(sends bool) uint32 {
	if sends {
		return format.Sends
	}
	return format.Receives
}
