package release

import (
	"fmt"

	"weft/internal/host"
	"weft/internal/ranks"
)

// Sizes of NCCL's buffers for one connection, in order of protocol: LL, LL128, simple.
var buffers = []int64{512 << 10, 4800 << 10, 4 << 20}

const steps = 8 // requests of one connection in flight (NCCL_STEPS)

// Ring is a rank's two connections: to the next rank and from the previous one.
type Ring struct {
	c          *Comm
	g          ranks.Group
	send, recv host.Ptr
	smem, rmem []host.Ptr
	smh, rmh   []host.Ptr
}

// Connect sets the ring up as the transport does: listen, trade handles, connect,
// register the sending buffers, accept, close the listener, register the receiving ones.
func (c *Comm) Connect(g ranks.Group, dev int) (*Ring, error) {
	r := &Ring{c: c, g: g}
	if c.P.R.Grouped() {
		if _, err := c.Net.Props(dev); err != nil {
			return nil, err
		}
	}
	handle, listen, err := c.Net.Listen(dev)
	if err != nil {
		return nil, err
	}
	size := int64(c.P.R.Limits["NCCL_NET_HANDLE_MAXSIZE"])
	text, err := c.P.H.Read(handle, size)
	if err != nil {
		return nil, err
	}
	all, err := g.Gather(fmt.Sprintf("handles %d", c.ID), text)
	if err != nil {
		return nil, err
	}
	if err := c.P.H.Write(handle, all[(g.Rank()+1)%g.Size()]); err != nil {
		return nil, err
	}
	if err := c.attributes(); err != nil {
		return nil, err
	}
	if c.P.R.BlockingConnect() {
		err = r.blocking(dev, handle, listen)
	} else {
		err = r.polled(dev, handle, listen)
	}
	if err != nil {
		return nil, err
	}
	return r, c.P.H.Free(handle)
}

func (c *Comm) attributes() error {
	if !c.P.R.Attributes() || !c.Net.Slots["setNetAttr"] {
		return nil
	}
	_, err := c.Net.Table.Call(c.Net.Setup, "setNetAttr", host.Args{"ctx", c.Net.Ctx, "op", 4, "attr", []int{8, 1, 1, 1, 8, 1, 1, 1}})
	return err
}

// blocking is NCCL up to 2.11: on the calling thread, all ranks connect before any accepts.
func (r *Ring) blocking(dev int, handle, listen host.Ptr) error {
	n := r.c.Net
	var err error
	if r.send, err = n.Connect(dev, handle); err != nil {
		return err
	}
	if r.send == 0 {
		return fmt.Errorf("connect returned no comm, and %v uses it at once", r.c.P.R)
	}
	if err := r.register(r.send, &r.smem, &r.smh); err != nil {
		return err
	}
	if _, err := r.g.Gather(fmt.Sprintf("connected %d", r.c.ID), nil); err != nil {
		return err
	}
	if r.recv, err = n.Accept(listen); err != nil {
		return err
	}
	if r.recv == 0 {
		return fmt.Errorf("accept returned no comm, and %v uses it at once", r.c.P.R)
	}
	if err := n.CloseListen(listen); err != nil {
		return err
	}
	return r.register(r.recv, &r.rmem, &r.rmh)
}

// polled is NCCL from 2.12 on: the proxy's service thread goes round.
func (r *Ring) polled(dev int, handle, listen host.Ptr) error {
	n := r.c.Net
	var err error
	if r.send, r.recv, err = n.ConnectAccept(dev, handle, listen, r.c.P.o.Patience); err != nil {
		return err
	}
	if err := r.register(r.send, &r.smem, &r.smh); err != nil {
		return err
	}
	if err := n.CloseListen(listen); err != nil {
		return err
	}
	return r.register(r.recv, &r.rmem, &r.rmh)
}

func (r *Ring) register(comm host.Ptr, mem, mh *[]host.Ptr) error {
	for _, size := range buffers {
		if size > r.c.P.R.MaxRegister(r.c.plug.table) {
			continue
		}
		a, err := r.c.P.H.Alloc(size)
		if err != nil {
			return err
		}
		h, err := r.c.Net.RegMr(comm, a, size)
		if err != nil {
			return err
		}
		*mem, *mh = append(*mem, a), append(*mh, h)
	}
	return nil
}

// Reduce all-reduces count float32 over the ring, every element checked.
func (r *Ring) Reduce(count int64, seed int) error {
	h, group := r.c.P.H, 1
	if r.c.P.R.Grouped() && len(r.c.Props) > 0 {
		group = max(1, min(4, r.c.Props[0].MaxRecvs))
	}
	const piece = 64 << 10
	size := 2*4*count + int64(4*group*piece) + 4096
	base, err := h.Alloc(size)
	if err != nil {
		return err
	}
	n := r.c.Net
	smh, err := n.RegMr(r.send, base, size)
	if err != nil {
		return err
	}
	rmh, err := n.RegMr(r.recv, base, size)
	if err != nil {
		return err
	}
	out := (4*count + 63) / 64 * 64
	rep, err := h.CallIn(r.c.P.o.Patience*2, n.Data, "ring.allreduce", host.Args{"on", n.As, "send", r.send, "recv", r.recv, "smh", smh, "rmh", rmh,
		"rank", r.g.Rank(), "nranks", r.g.Size(), "in", base, "out", base + host.Ptr(out), "scratch", base + host.Ptr(2*out),
		"count", count, "iters", 2, "piece", piece, "group", group, "seed", seed, "limit", r.c.P.o.Patience})
	if err != nil {
		return err
	}
	if w := rep.Int("wrong"); w != 0 {
		return fmt.Errorf("all-reduce of %d elements: %d are wrong, the first is %d", count, w, rep.Int("first"))
	}
	if _, err := r.g.Gather(fmt.Sprintf("reduced %d %d %d", r.c.ID, count, seed), nil); err != nil {
		return err
	}
	if err := n.DeregMr(r.send, smh); err != nil {
		return err
	}
	if err := n.DeregMr(r.recv, rmh); err != nil {
		return err
	}
	return h.Free(base)
}

// Close is what the transport's free functions do: deregister, then close, sender first.
func (r *Ring) Close() error {
	n := r.c.Net
	for _, mh := range r.smh {
		if err := n.DeregMr(r.send, mh); err != nil {
			return err
		}
	}
	if err := n.CloseSend(r.send); err != nil {
		return err
	}
	for _, mh := range r.rmh {
		if err := n.DeregMr(r.recv, mh); err != nil {
			return err
		}
	}
	return n.CloseRecv(r.recv)
}
