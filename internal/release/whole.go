package release

import (
	"fmt"
	"time"

	"weft/internal/host"
)

// Whole sends a registered buffer to the next rank, which receives it step by step
// from the previous one. The sender offers all that is left, and goes on behind
// what its test says was taken.
func (r *Ring) Whole(total int64) error {
	if !r.c.P.R.SendsWhole() || r.c.Props[0].RegIsGlobal == 0 {
		return fmt.Errorf("%v does not send registered memory as a whole on a device with regIsGlobal %d", r.c.P.R, r.c.Props[0].RegIsGlobal)
	}
	const largest, step = 1 << 30, 512 << 10
	h, n, rank := r.c.P.H, r.c.Net, r.g.Rank()
	prev := (rank + r.g.Size() - 1) % r.g.Size()
	src, err := h.Alloc(total)
	if err != nil {
		return err
	}
	dst, err := h.Alloc(total)
	if err != nil {
		return err
	}
	if err := h.Fill(src, total, uint64(rank)); err != nil {
		return err
	}
	smh, err := n.RegMr(r.send, src, total)
	if err != nil {
		return err
	}
	rmh, err := n.RegMr(r.recv, dst, total)
	if err != nil {
		return err
	}
	var sending host.Ptr
	var receiving []host.Ptr
	var sent, posted, received int64
	deadline := time.Now().Add(r.c.P.o.Patience)
	for sent < total || received < total {
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %d bytes sent, %d received of %d", r.c.P.o.Patience, sent, received, total)
		}
		if posted < total && len(receiving) < steps {
			size := min(step, total-posted)
			q, err := n.Irecv(r.recv, []host.Recv{{Data: dst + host.Ptr(posted), Size: size, Tag: prev, MH: rmh}})
			if err != nil {
				return err
			}
			if q != 0 {
				receiving, posted = append(receiving, q), posted+size
			}
		}
		if len(receiving) > 0 {
			ok, sizes, err := n.Test(receiving[0], 1)
			if err != nil {
				return err
			}
			if want := min(step, total-received); ok && sizes[0] != want {
				return fmt.Errorf("a receive of %d bytes is done with %d", want, sizes[0])
			} else if ok {
				receiving, received = receiving[1:], received+want
			}
		}
		if sent < total && sending == 0 {
			if sending, err = n.Isend(r.send, src+host.Ptr(sent), min(largest, total-sent), rank, smh); err != nil {
				return err
			}
		}
		if sending != 0 {
			ok, sizes, err := n.Test(sending, 1)
			if err != nil {
				return err
			}
			if ok {
				sending, sent = 0, sent+sizes[0]
			}
		}
	}
	if err := h.Check(dst, total, uint64(prev)); err != nil {
		return err
	}
	if _, err := r.g.Gather(fmt.Sprintf("whole %d %d", r.c.ID, total), nil); err != nil {
		return err
	}
	for _, step := range []func() error{func() error { return n.DeregMr(r.send, smh) }, func() error { return n.DeregMr(r.recv, rmh) },
		func() error { return h.Free(src) }, func() error { return h.Free(dst) }} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
