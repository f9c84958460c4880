package release

import (
	"fmt"
	"time"

	"weft/internal/host"
)

// protocol is one of NCCL's: which buffer, how much a receive posts, how much is sent.
type protocol struct {
	buffer   int
	optional bool // nobody waits for the receive's completion: flags in the data tell
}

var protocols = []protocol{{0, true}, {1, true}, {2, false}}

// Steps runs the proxy's loop over the ring for one protocol: up to 8 requests each
// way, receives post a whole step and get less, the oldest request is tested, and a
// send that got no request is repeated. Every message is checked.
func (r *Ring) Steps(p protocol, count int) error {
	slot := buffers[p.buffer] / steps
	sent := func(rank, i int) int64 { return max(1, slot-int64(i*1000)-int64(rank)) }
	seed := func(rank, i int) uint64 { return uint64(rank)<<32 | uint64(i)<<8 | uint64(p.buffer) }
	prev := (r.g.Rank() + r.g.Size() - 1) % r.g.Size()
	h, n := r.c.P.H, r.c.Net
	ph, err := h.Alloc(64)
	if err != nil {
		return err
	}
	sends, recvs := make([]host.Ptr, steps), make([]host.Ptr, steps)
	var posted, received, transmitted, done int
	deadline := time.Now().Add(r.c.P.o.Patience)
	for done < count || received < count {
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %d receives posted, %d done, %d sends posted, %d done", r.c.P.o.Patience, posted, received, transmitted, done)
		}
		if posted < count && posted < received+steps {
			at := r.rmem[p.buffer] + host.Ptr(int64(posted%steps)*slot)
			req := host.Ptr(0)
			if p.optional && r.c.P.R.OptionalReceives() && !clears(r.c.plug.table) {
				req = 1
			}
			q, err := n.Irecv(r.recv, []host.Recv{{Data: at, Size: slot, Tag: prev, MH: r.rmh[p.buffer], PH: ph}}, "req", req)
			if err != nil {
				return err
			}
			if q == 1 {
				return fmt.Errorf("irecv left *request = 1; the next call would be test(1)")
			}
			if q != 0 {
				recvs[posted%steps] = q
				posted++
			}
		}
		if received < posted {
			ok, sizes, err := n.Test(recvs[received%steps], 1)
			if err != nil {
				return err
			}
			if ok {
				if err := r.check(p, slot, received, sizes[0], sent(prev, received), seed(prev, received)); err != nil {
					return err
				}
				received++
			}
		}
		if transmitted < count && transmitted < done+steps {
			at := r.smem[p.buffer] + host.Ptr(int64(transmitted%steps)*slot)
			if err := h.Fill(at, sent(r.g.Rank(), transmitted), seed(r.g.Rank(), transmitted)); err != nil {
				return err
			}
			q, err := n.Isend(r.send, at, sent(r.g.Rank(), transmitted), r.g.Rank(), r.smh[p.buffer], "ph", ph)
			if err != nil {
				return err
			}
			if q != 0 {
				sends[transmitted%steps] = q
				transmitted++
			}
		}
		if done < transmitted {
			ok, _, err := n.Test(sends[done%steps], 1)
			if err != nil {
				return err
			}
			if ok {
				done++
			}
		}
	}
	_, err = r.g.Gather(fmt.Sprintf("steps %d %d", r.c.ID, p.buffer), nil)
	return err
}

// check looks at a message. One that nobody waits for may be done before its bytes:
// then they come while the loop goes on, so their end is awaited with empty tests.
func (r *Ring) check(p protocol, slot int64, i int, got, want int64, seed uint64) error {
	at := r.rmem[p.buffer] + host.Ptr(int64(i%steps)*slot)
	if !p.optional && got != want {
		return fmt.Errorf("message %d: %d bytes instead of %d", i, got, want)
	}
	err := r.c.P.H.Check(at, want, seed)
	if err != nil {
		return fmt.Errorf("message %d of %d bytes: %w", i, want, err)
	}
	return nil
}
