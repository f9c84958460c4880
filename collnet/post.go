package collnet

import (
	"weft/abi"
	"weft/collnet/kernels"
	"weft/collnet/schedule"
	"weft/internal/report"
	"weft/transport/rdma"
)

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
	o.at, o.mine = w.mine(c.rank)
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
	o.at, o.mine = w.mine(c.rank)
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
	helped := c.Help()
	if !helped {
		c.ctx.Requests.Await(c.block, nil) // who is at work may not have seen it
	}
	if !helped || c.idle.Load() {
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
		r, err := c.regions.find(name, what, p.Address, p.Size, p.Handle)
		if err != nil {
			return nil, err
		}
		m[i] = part{address: p.Address, off: off, size: p.Size, handle: p.Handle, region: r}
		off += p.Size
	}
	return m, nil
}
