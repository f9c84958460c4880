package collnet

import (
	"weft/abi"
	"weft/collnet/kernels"
	"weft/collnet/schedule"
	"weft/internal/report"
	"weft/transport/rdma"
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

	stage     scratch // in the place of a large buffer of several parts
	algorithm schedule.Algorithm
	order     []int
	chunks    []schedule.Chunk // to be begun
	begun     bool             // it has been cut
	left      int              // chunks that are not done
}

func (o *op) done() bool { return o.begun && o.left == 0 }

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

// own is what the window has of a rank's part: where in the window that begins, and how much it is.
func (w Window) own(rank int) (at, size int) {
	from := max(w.Off, rank*w.Rank)
	return from - w.Off, max(0, min(w.Off+w.Bytes, (rank+1)*w.Rank)-from)
}

// of is the window as a plan has it, in elements.
func (w Window) of(k schedule.Kind, elem, acc int) schedule.Op {
	return schedule.Op{Kind: k, Count: int64(w.Rank / elem), Elem: elem, Acc: acc, Window: schedule.Window{Off: int64(w.Off / elem), Len: int64(w.Bytes / elem)}}
}

// AllReduce begins an all-reduce of count elements; a request of 0 means "not yet".
func (c *Comm) AllReduce(send, recv Buf, count uint64, t abi.DataType, red abi.RedOp) (uintptr, error) {
	o := &op{name: "iallreduce", elem: t, red: red}
	if err := c.reducible(o.name, t, red); err != nil {
		return 0, err
	}
	size := kernels.Size(t)
	if count > maxBytes/uint64(size) {
		return 0, c.errorf(report.Misuse, o.name, "%d elements of %d bytes are more than maxCollBytes", count, size)
	}
	o.size = int(count) * size
	o.what = schedule.Op{Kind: schedule.AllReduce, Count: int64(count), Elem: size, Acc: kernels.AccSize(t)}
	return c.post(o, []Part{{send, o.size}}, []Part{{recv, o.size}})
}

// AllGather begins an all-gather; send is what the window has of this rank's part.
func (c *Comm) AllGather(send Buf, recv []Part, w Window) (uintptr, error) {
	o := &op{name: "iallgather", size: w.Bytes, elem: abi.Uint8}
	if err := c.whole(o.name, recv, w); err != nil {
		return 0, err
	}
	o.what = w.of(schedule.AllGather, 1, 1)
	o.at, o.mine = w.own(c.rank)
	return c.post(o, []Part{{send, o.mine}}, recv)
}

// ReduceScatter begins a reduce-scatter; recv takes what the window has of this rank's part.
func (c *Comm) ReduceScatter(send []Part, recv Buf, w Window, t abi.DataType, red abi.RedOp) (uintptr, error) {
	o := &op{name: "ireducescatter", elem: t, red: red}
	if err := c.reducible(o.name, t, red); err != nil {
		return 0, err
	}
	if err := c.whole(o.name, send, w); err != nil {
		return 0, err
	}
	size := kernels.Size(t)
	if w.Rank%size != 0 || w.Off%size != 0 || w.Bytes%size != 0 {
		return 0, c.errorf(report.Misuse, o.name, "%d bytes from %d on, of parts of %d, cut elements of %d", w.Bytes, w.Off, w.Rank, size)
	}
	o.what = w.of(schedule.ReduceScatter, size, kernels.AccSize(t))
	o.at, o.mine = w.own(c.rank)
	o.size = o.mine
	return c.post(o, send, []Part{{recv, o.mine}})
}

// maxBytes is maxCollBytes of getProperties.
const maxBytes = rdma.MaxBytes

// reducible reports whether an operation on a type can be asked for.
func (c *Comm) reducible(name string, t abi.DataType, red abi.RedOp) error {
	if kernels.Supported(t, red) {
		return nil
	}
	return c.errorf(report.Misuse, name, "operation %d of type %d, which reduceSupport says no to", red, t)
}

// whole refuses parts that are not what the window is.
func (c *Comm) whole(name string, parts []Part, w Window) error {
	total := 0
	for _, p := range parts {
		total += p.Size
	}
	switch {
	case w.Rank > (1<<62)/c.n || w.Off > c.n*w.Rank || w.Bytes > c.n*w.Rank-w.Off:
		return c.errorf(report.Misuse, name, "%d bytes from %d on are not inside %d parts of %d", w.Bytes, w.Off, c.n, w.Rank)
	case w.Bytes > maxBytes:
		return c.errorf(report.Misuse, name, "%d bytes are more than maxCollBytes", w.Bytes)
	case total != w.Bytes:
		return c.errorf(report.Misuse, name, "buffers of %d bytes for a window of %d", total, w.Bytes)
	}
	return nil
}

// post queues an operation, and begins it.
func (c *Comm) post(o *op, send, recv []Part) (uintptr, error) {
	request, err := c.enqueue(o, send, recv)
	if request == 0 || err != nil {
		return 0, err
	}
	if !c.Help() || c.idle.Load() {
		c.rouse()
	}
	return request, nil
}

func (c *Comm) enqueue(o *op, send, recv []Part) (uintptr, error) {
	c.queue.Lock()
	defer c.queue.Unlock()
	if c.queue.closed {
		return 0, c.errorf(report.Misuse, o.name, "the comm was closed")
	}
	if c.queue.failed != nil {
		return 0, c.queue.failed
	}
	var err error
	if o.send, err = c.memory(o.name, "sendData", send); err != nil {
		return 0, err
	}
	if o.recv, err = c.memory(o.name, "recvData", recv); err != nil {
		return 0, err
	}
	o.what.N, o.what.Rank = c.n, c.rank
	if o.send.overlaps(o.recv) {
		if o.what.InPlace = o.shares(); !o.what.InPlace {
			return 0, c.errorf(report.Misuse, o.name, "the two buffers overlap, and are not in place")
		}
	}
	if o.request = c.ctx.Requests.Take(c.block); o.request == 0 {
		return 0, nil
	}
	c.queue.posted = append(c.queue.posted, o)
	return o.request, nil
}

// memory is the host's parts as an operation has them. The queue is locked.
func (c *Comm) memory(name, what string, parts []Part) (memory, error) {
	m := make(memory, len(parts))
	off := 0
	for i, p := range parts {
		r, err := c.inside(name, what, p.Address, p.Size, p.Handle)
		if err != nil {
			return nil, err
		}
		m[i] = part{address: p.Address, off: off, size: p.Size, handle: p.Handle, region: r}
		off += p.Size
	}
	return m, nil
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
