package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// exported is memory behind a descriptor: a dma-buf of /dev/udmabuf if there is one,
// else a memfd, which the simulated devices take as well.
func (p *peer) exported(size int64) (at host.Ptr, fd int64) {
	p.t.Helper()
	r, err := p.h.Call("main", "mem.dmabuf", host.Args{"size", size})
	if host.NoSlot(err) {
		r, err = p.h.Call("main", "mem.alloc", host.Args{"size", size, "shared", 1})
	}
	must(p.t, err, "memory behind a descriptor")
	return r.Ptr("addr"), r.Int("fd")
}

// lent is a copy of a descriptor that the caller will close at once, as NCCL does.
func (p *peer) lent(fd int64) int64 {
	p.t.Helper()
	r, err := p.h.Call("main", "fd.dup", host.Args{"fd", fd})
	must(p.t, err, "dup")
	return r.Int("fd")
}

func (p *peer) regDMABuf(comm, at host.Ptr, size, offset, fd int64) (host.Ptr, error) {
	r, err := p.n.Table.Call(p.n.Setup, "regMrDmaBuf", host.Args{"comm", comm, "data", at, "size", size, "type", 2, "offset", offset, "fd", fd})
	return r.Ptr("mh"), err
}

// TestDMABufOverRDMA moves data between parts of buffers that are named by
// descriptors, which are closed, and their numbers used again, at once.
func TestDMABufOverRDMA(t *testing.T) {
	for _, version := range []int{6, 8, newest} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			tx, rx := w.start("simA", version), w.start("simB", version)
			c := join(tx, rx, 4096)
			const whole = 1 << 20
			a, afd := tx.exported(whole)
			b, bfd := rx.exported(whole)
			before := [2]int{fds(t, tx), fds(t, rx)}
			var objects [2]simverbs.Objects
			settle(t, "a lane and a probe on both sides, and where it is received a queue pair for flushes", func() (string, bool) {
				objects = [2]simverbs.Objects{w.count(tx), w.count(rx)}
				return fmt.Sprintf("%+v now", objects), objects[0].QPs == 2 && objects[1].QPs == 3
			})
			for i, part := range []struct{ from, to, size int64 }{
				{0, 0, whole}, {4096, 8192, 100_000}, {100, 5000, 70_000}, {whole - 1, 0, 1}, {8191, 4095, 2}, {65536 + 192, whole - 300_000, 300_000},
			} {
				what := fmt.Sprintf("%d bytes from offset %d to %d", part.size, part.from, part.to)
				src, dst := a+host.Ptr(part.from), b+host.Ptr(part.to)
				must(t, tx.h.Fill(a, whole, uint64(i)), "fill")
				must(t, tx.h.Fill(src, part.size, 100+uint64(i)), "fill")
				must(t, rx.h.FillByte(b, whole, 0xee), "fill")
				var mh [2]host.Ptr
				for k, e := range []struct {
					p    *peer
					comm host.Ptr
					at   host.Ptr
					off  int64
					fd   int64
				}{{tx, c.send, src, part.from, afd}, {rx, c.recv, dst, part.to, bfd}} {
					fd := e.p.lent(e.fd)
					m, err := e.p.regDMABuf(e.comm, e.at, part.size, e.off, fd)
					must(t, err, what+": regMrDmaBuf")
					_, err = e.p.h.Call("main", "fd.close", host.Args{"fd", fd})
					must(t, err, "close")
					mh[k] = m
				}
				for _, p := range []*peer{tx, rx} { // other memory takes the numbers
					_, err := p.h.Call("main", "mem.alloc", host.Args{"size", 4096, "shared", 1})
					must(t, err, "memory")
				}
				q, err := rx.n.Irecv(c.recv, []host.Recv{{Data: dst, Size: part.size, Tag: 1, MH: mh[1]}}, "poll", 1)
				must(t, err, "irecv")
				s, err := tx.n.Isend(c.send, src, part.size, 1, mh[0], "poll", 1)
				must(t, err, "isend")
				_, err = tx.n.Wait(s, 1, patience)
				must(t, err, "send")
				_, err = rx.n.Wait(q, 1, patience)
				must(t, err, "receive")
				must(t, rx.h.Check(dst, part.size, 100+uint64(i)), what)
				must(t, rx.h.CheckByte(b, part.to, 0xee), what+", bytes before it")
				must(t, rx.h.CheckByte(dst+host.Ptr(part.size), whole-part.to-part.size, 0xee), what+", bytes behind it")
				must(t, tx.n.DeregMr(c.send, mh[0]), "deregMr")
				must(t, rx.n.DeregMr(c.recv, mh[1]), "deregMr")
				before[0], before[1] = before[0]+1, before[1]+1 // that other memory's
			}
			for k, p := range []*peer{tx, rx} {
				w.atRest(p, objects[k], "after deregMr")
				settle(t, fmt.Sprintf("%d descriptors are expected", before[k]), func() (string, bool) {
					n := fds(t, p)
					return fmt.Sprintf("%d are there", n), n <= before[k]
				})
			}
			refusedDMABufs(t, tx, c.send, a, whole, afd)
			c.move(traffic{size: 1000, count: 3, window: 2})
			if byRDMA(tx, 0) != 1 {
				t.Errorf("not by RDMA: %q", said(tx, 0))
			}
		})
	}
}

// refusedDMABufs names memory that is none: an error that says which call refuses and why, and the comm lives on.
func refusedDMABufs(t *testing.T, p *peer, comm, at host.Ptr, size, fd int64) {
	t.Helper()
	closed := p.lent(fd)
	_, err := p.h.Call("main", "fd.close", host.Args{"fd", closed})
	must(t, err, "close")
	for _, c := range []struct {
		name             string
		size, offset, fd int64
		says             string
	}{
		{"no descriptor", size, 0, -1, "descriptor -1"},
		{"a closed descriptor", size, 0, closed, fmt.Sprintf("descriptor %d", closed)},
		{"an offset that wraps", size, -4096, fd, "offset"},
		{"a descriptor without memory", size, 0, 0, "ibv_reg_dmabuf_mr"},
	} {
		mark := marked(p)
		if mh, err := p.regDMABuf(comm, at, c.size, c.offset, c.fd); err == nil {
			t.Errorf("%s is registered as %#x", c.name, mh)
		} else if lines := strings.Join(said(p, mark), "\n"); !strings.Contains(lines, c.says) || !strings.Contains(lines, "; ") && c.offset == 0 {
			t.Errorf("%s: %v: %s", c.name, err, lines)
		}
	}
}
