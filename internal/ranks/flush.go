package ranks

import (
	"fmt"
	"time"

	"weft/internal/host"
)

// Flushes is what --flush did, over all ranks.
type Flushes struct {
	Groups   int64 `json:"groups"`   // grouped receives, each followed by a flush
	Buffers  int   `json:"buffers"`  // of each
	Requests int64 `json:"requests"` // flushes that the plugin had something to do for
}

// The groups of a run with --flush: buffers of sizes around what a packet and a lane's share hold, some of them empty.
const (
	flushRounds = 8
	flushSlot   = 80 << 10
)

var flushSizes = [...]int64{1, 65537, 0, 4096, 127, 8193, 70000, 4}

// flush sends groups of messages of many sizes around the ring, last tag first, and flushes every group that has come before
// its bytes are looked at, as NCCL does with a GPU's memory.
func (r *rank) flush() error {
	if !r.o.Flush {
		return nil
	}
	r.busy("flushed groups")
	n := 1
	if r.n.Grouped() {
		n = max(1, min(r.props.MaxRecvs, len(flushSizes)))
	}
	size := int64(2 * n * flushSlot)
	base, err := r.h.Alloc(size)
	if err != nil {
		return err
	}
	smh, err := r.n.RegMr(r.send, base, size)
	if err != nil {
		return err
	}
	rmh, err := r.n.RegMr(r.recv, base, size)
	if err != nil {
		return err
	}
	requests := int64(0)
	for round := range flushRounds {
		g := &flushGroup{r: r, round: round}
		for i := range n {
			out, in := base+host.Ptr(i*flushSlot), base+host.Ptr((n+i)*flushSlot)
			bytes := flushSizes[(i+round)%len(flushSizes)]
			g.sends = append(g.sends, host.Recv{Data: out, Size: bytes, Tag: 40 + i, MH: smh})
			g.recvs = append(g.recvs, host.Recv{Data: in, Size: flushSlot, Tag: 40 + i, MH: rmh})
		}
		some, err := g.move()
		if err != nil {
			return fmt.Errorf("flushed group %d of %d: %w", round+1, flushRounds, err)
		}
		requests += some
	}
	for _, step := range []func() error{
		func() error { return r.n.DeregMr(r.send, smh) },
		func() error { return r.n.DeregMr(r.recv, rmh) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	all, err := r.tell("flushes", share{First: requests})
	if err != nil || r.g.Rank() != 0 {
		return err
	}
	f := Flushes{Groups: int64(flushRounds * len(all)), Buffers: n}
	for _, s := range all {
		f.Requests += s.First
	}
	r.sink.Flushed(f)
	return nil
}

// flushGroup is one grouped receive from the previous rank, and the sends to the next.
type flushGroup struct {
	r            *rank
	round        int
	sends, recvs []host.Recv
}

// seed is what a rank sends in a buffer of a round.
func (g *flushGroup) seed(rank, buffer int) uint64 {
	return uint64(1 + rank*1_000_000 + g.round*1000 + buffer)
}

// move returns how many requests the flush took.
func (g *flushGroup) move() (int64, error) {
	r, n := g.r, len(g.sends)
	for i, s := range g.sends {
		if err := r.h.Fill(s.Data, s.Size, g.seed(r.g.Rank(), i)); err != nil {
			return 0, err
		}
		if err := r.h.FillByte(g.recvs[i].Data, g.recvs[i].Size, 0x5c); err != nil {
			return 0, err
		}
	}
	sizes, err := g.exchange()
	if err != nil {
		return 0, err
	}
	flushed := append([]host.Recv(nil), g.recvs...)
	for i := range flushed {
		flushed[i].Size = sizes[i] // NCCL flushes what has come
	}
	req, err := r.n.Iflush(r.recv, flushed)
	if err != nil {
		return 0, fmt.Errorf("flush: %w", err)
	}
	some := int64(0)
	if req != 0 {
		some = 1
		if _, err := r.n.Wait(req, n, r.o.Limit); err != nil {
			return 0, fmt.Errorf("flush: %w", err)
		}
	}
	from := (r.g.Rank() + r.g.Size() - 1) % r.g.Size()
	for i, b := range g.recvs {
		if want := g.sends[i].Size; sizes[i] != want {
			return 0, fmt.Errorf("buffer %d has %d bytes instead of %d", i, sizes[i], want)
		}
		if err := r.h.Check(b.Data, sizes[i], g.seed(from, i)); err != nil {
			return 0, fmt.Errorf("buffer %d of %d bytes: %w", i, sizes[i], err)
		}
		if err := r.h.CheckByte(b.Data+host.Ptr(sizes[i]), b.Size-sizes[i], 0x5c); err != nil {
			return 0, fmt.Errorf("behind buffer %d of %d bytes: %w", i, sizes[i], err)
		}
	}
	return some, nil
}

// exchange receives and sends the group, testing the receive and the oldest send in turn, and returns the sizes that came.
func (g *flushGroup) exchange() (sizes []int64, err error) {
	r, n := g.r, len(g.sends)
	var recv host.Ptr
	var sent []host.Ptr
	posted, done := 0, 0
	for until := time.Now().Add(r.o.Limit); done < n || sizes == nil; {
		if time.Now().After(until) {
			return nil, fmt.Errorf("%d of %d sends are done, receive %v, after %v", done, n, sizes != nil, r.o.Limit)
		}
		if recv == 0 {
			if recv, err = r.n.Irecv(r.recv, g.recvs); err != nil {
				return nil, fmt.Errorf("irecv: %w", err)
			}
		} else if sizes == nil {
			ok, got, err := r.n.Test(recv, n)
			if err != nil {
				return nil, fmt.Errorf("receive: %w", err)
			}
			if ok {
				sizes = got
			}
		}
		if posted < n {
			s := g.sends[n-1-posted]
			req, err := r.n.Isend(r.send, s.Data, s.Size, s.Tag, s.MH)
			if err != nil {
				return nil, fmt.Errorf("isend: %w", err)
			}
			if req != 0 {
				sent = append(sent, req)
				posted++
			}
		}
		if done < posted {
			ok, _, err := r.n.Test(sent[done], 1)
			if err != nil {
				return nil, fmt.Errorf("send: %w", err)
			}
			if ok {
				done++
			}
		}
	}
	return sizes, nil
}
