package collnet

import (
	"weft/abi"
	"weft/collnet/schedule"
)

// op is an operation of the host.
type op struct {
	name       string
	request    uintptr
	size       int // that test tells
	elem       abi.DataType
	red        abi.RedOp
	what       schedule.Op
	send, recv memory
	at, mine   int // of the large buffer, what is this rank's

	stage scratch // in the place of a large buffer of several parts
	way   *way    // nil: not begun
	next  int     // chunk to be begun
	left  int     // chunks that are not done
}

func (o *op) done() bool { return o.way != nil && o.left == 0 }

// begun reports whether all chunks are.
func (o *op) begun() bool { return o.way != nil && o.next == len(o.way.chunks) }

// Buf is memory of the host and its registration.
type Buf struct {
	Address uintptr
	Handle  uintptr
}

// Part is one of several buffers that count as one behind the other.
type Part struct {
	Buf
	Size int
}

// Window is the part of a gathered or scattered buffer that a call is about: all ranks' parts, Rank bytes each, lie one
// behind the other, and the call is about Bytes of that from Off on.
type Window struct{ Rank, Off, Bytes int }

// mine is what the window has of a rank's part: where in the window that begins, and how much it is.
func (w Window) mine(rank int) (at, size int) {
	from := max(w.Off, rank*w.Rank)
	return from - w.Off, max(0, min(w.Off+w.Bytes, (rank+1)*w.Rank)-from)
}

// of is the window as a plan has it, in elements.
func (w Window) of(k schedule.Kind, elem, acc int) schedule.Op {
	return schedule.Op{Kind: k, Count: int64(w.Rank / elem), Elem: elem, Acc: acc, Window: schedule.Window{Off: int64(w.Off / elem), Len: int64(w.Bytes / elem)}}
}

// parts is the large buffer.
func (o *op) parts() memory {
	if o.what.Kind == schedule.ReduceScatter {
		return o.send
	}
	return o.recv
}

// buffer is a span of one of the operation's buffers.
func (o *op) buffer(m memory, off, size int) Buffer {
	if len(m) > 1 {
		return o.stage.at(off, size)
	}
	return Buffer{Address: m[0].address + uintptr(off), Size: size, Handle: m[0].handle}
}

// end gives the host its result, where that was staged.
func (o *op) end() error {
	if o.what.Kind == schedule.AllGather && len(o.recv) > 1 {
		o.recv.copyFrom(o.stage.address)
	}
	return o.stage.free()
}

// shares reports whether the operation is in place: the small buffer is where the large one has this rank's part.
func (o *op) shares() bool {
	if o.what.Kind == schedule.AllReduce {
		return o.send[0].address == o.recv[0].address
	}
	large, small := o.recv, o.send
	if o.what.Kind == schedule.ReduceScatter {
		large, small = o.send, o.recv
	}
	return len(large) == 1 && small[0].address == large[0].address+uintptr(o.at)
}
