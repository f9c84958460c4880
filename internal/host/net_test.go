package host_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"weft/internal/host"
)

// pair is two hosts with a connection from a to b.
type pair struct {
	a, b       *host.Host
	na, nb     *host.Net
	send, recv host.Ptr
}

// join connects both ways round on one thread each, as a ring of two does.
func join(t *testing.T, version int) (p pair, back pair) {
	t.Helper()
	a, b := start(t, host.Options{Name: "a"}), start(t, host.Options{Name: "b"})
	na, nb := load(t, a, good(t), version), load(t, b, good(t), version)
	type side struct {
		h      *host.Host
		n      *host.Net
		handle host.Ptr
		listen host.Ptr
	}
	s := []side{{h: a, n: na}, {h: b, n: nb}}
	var err error
	for i := range s {
		if s[i].handle, s[i].listen, err = s[i].n.Listen(0); err != nil {
			t.Fatal(err)
		}
	}
	text := make([][]byte, 2)
	for i := range s {
		if text[i], err = s[i].h.Read(s[i].handle, 128); err != nil {
			t.Fatal(err)
		}
	}
	type ends struct {
		send, recv host.Ptr
		err        error
	}
	done := make([]chan ends, 2)
	for i := range s {
		done[i] = make(chan ends, 1)
		peer, err := s[i].h.Alloc(128)
		if err != nil {
			t.Fatal(err)
		}
		if err := s[i].h.Write(peer, text[1-i]); err != nil {
			t.Fatal(err)
		}
		go func() {
			var e ends
			e.send, e.recv, e.err = s[i].n.ConnectAccept(0, peer, s[i].listen, 20*time.Second)
			done[i] <- e
		}()
	}
	ea, eb := <-done[0], <-done[1]
	if ea.err != nil || eb.err != nil {
		t.Fatal(ea.err, eb.err)
	}
	for i := range s {
		if err := s[i].n.CloseListen(s[i].listen); err != nil {
			t.Fatal(err)
		}
	}
	return pair{a, b, na, nb, ea.send, eb.recv}, pair{b, a, nb, na, eb.send, ea.recv}
}

// buffer allocates memory and registers it with a comm.
func buffer(t *testing.T, h *host.Host, n *host.Net, comm host.Ptr, size int64) (addr, mh host.Ptr) {
	t.Helper()
	addr, err := h.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	if mh, err = n.RegMr(comm, addr, size); err != nil {
		t.Fatal(err)
	}
	return addr, mh
}

// TestEveryTable moves data through each table that the C host calls by hand: the plugin is written by hand as well.
func TestEveryTable(t *testing.T) {
	first, _ := host.FamilyNet.Versions()
	for v := first; v <= host.FamilyNet.Witness(); v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			p, back := join(t, v)
			if n, err := p.na.Devices(); err != nil || n < 1 {
				t.Fatalf("devices %d (%v)", n, err)
			}
			if props, err := p.na.Props(0); err != nil || v > 2 && props.Name == "(filla5)" {
				t.Errorf("props %+v (%v)", props, err)
			}
			single(t, p)
			group := 1
			if p.na.Grouped() {
				group = 2
				grouped(t, p)
			}
			allreduce(t, p, back, group)
			loops(t, p, back)
			for _, err := range []error{p.na.CloseSend(p.send), p.nb.CloseRecv(p.recv), back.na.CloseSend(back.send), back.nb.CloseRecv(back.recv), p.na.Finalize(), p.nb.Finalize()} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func single(t *testing.T, p pair) {
	t.Helper()
	src, smh := buffer(t, p.a, p.na, p.send, 4096)
	dst, rmh := buffer(t, p.b, p.nb, p.recv, 4096)
	if err := p.a.Fill(src, 1000, 9); err != nil {
		t.Fatal(err)
	}
	rreq, err := p.nb.Irecv(p.recv, []host.Recv{{Data: dst, Size: 4096, Tag: 3, MH: rmh}}, "poll", 1)
	if err != nil {
		t.Fatal(err)
	}
	sreq, err := p.na.Isend(p.send, src, 1000, 3, smh, "poll", 1)
	if err != nil {
		t.Fatal(err)
	}
	if sizes := waitBoth(t, p, []host.Ptr{sreq}, rreq, 1); fmt.Sprint(sizes) != "[1000]" {
		t.Errorf("received %v", sizes)
	}
	if err := p.b.Check(dst, 1000, 9); err != nil {
		t.Error(err)
	}
	if err := p.na.DeregMr(p.send, smh); err != nil {
		t.Error(err)
	}
	if err := p.nb.DeregMr(p.recv, rmh); err != nil {
		t.Error(err)
	}
}

func grouped(t *testing.T, p pair) {
	t.Helper()
	src, smh := buffer(t, p.a, p.na, p.send, 4096)
	dst, rmh := buffer(t, p.b, p.nb, p.recv, 4096)
	if err := p.a.Fill(src, 64, 1); err != nil {
		t.Fatal(err)
	}
	rreq, err := p.nb.Irecv(p.recv, []host.Recv{{Data: dst, Size: 100, Tag: 5, MH: rmh}, {Data: dst + 1024, Size: 100, Tag: 6, MH: rmh}}, "poll", 1)
	if err != nil {
		t.Fatal(err)
	}
	var sends []host.Ptr
	for _, tag := range []int{6, 5} {
		req, err := p.na.Isend(p.send, src, int64(tag*10), tag, smh, "poll", 1)
		if err != nil {
			t.Fatal(err)
		}
		sends = append(sends, req)
	}
	if sizes := waitBoth(t, p, sends, rreq, 2); fmt.Sprint(sizes) != "[50 60]" {
		t.Errorf("received %v", sizes)
	}
}

// waitBoth tests on both sides at once: a plugin moves data only inside calls.
func waitBoth(t *testing.T, p pair, sends []host.Ptr, recv host.Ptr, n int) []int64 {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		for _, req := range sends {
			if _, err := p.na.Wait(req, 1, 10*time.Second); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	sizes, err := p.nb.Wait(recv, n, 10*time.Second)
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
	return sizes
}

func allreduce(t *testing.T, p, back pair, group int) {
	t.Helper()
	const size, piece = 1 << 16, 4096
	var pend []*host.Pending
	for rank, s := range []struct {
		h          *host.Host
		n          *host.Net
		send, recv host.Ptr
	}{{p.a, p.na, p.send, back.recv}, {p.b, p.nb, back.send, p.recv}} {
		base, smh := buffer(t, s.h, s.n, s.send, 2*size+1<<20)
		rmh, err := s.n.RegMr(s.recv, base, 2*size+1<<20)
		if err != nil {
			t.Fatal(err)
		}
		pend = append(pend, s.h.Go(s.n.Data, "ring.allreduce", host.Args{"send", s.send, "recv", s.recv, "smh", smh, "rmh", rmh,
			"in", base, "out", base + size, "scratch", base + 2*size, "count", size / 4, "rank", rank, "nranks", 2, "piece", piece, "group", group, "iters", 3}))
	}
	for _, q := range pend {
		if r, err := q.Wait(); err != nil || r.Int("wrong") != 0 || r.Int("iters") != 3 {
			t.Errorf("all-reduce: %v (%v)", r.Values, err)
		}
	}
}

func loops(t *testing.T, p, back pair) {
	t.Helper()
	src, smh := buffer(t, p.a, p.na, p.send, 1<<20)
	dst, rmh := buffer(t, p.b, p.nb, p.recv, 1<<20)
	r := p.b.Go(p.nb.Data, "bw", host.Args{"role", "recv", "comm", p.recv, "mh", rmh, "buf", dst, "size", 1000, "span", 1 << 16, "count", 100, "check", 1})
	s := p.a.Go(p.na.Data, "bw", host.Args{"role", "send", "comm", p.send, "mh", smh, "buf", src, "size", 1000, "span", 1 << 16, "count", 100, "check", 1})
	if rep, err := s.Wait(); err != nil {
		t.Errorf("bw send: %v %v", rep.Values, err)
	}
	if rep, err := r.Wait(); err != nil || rep.Int("bad") != 0 {
		t.Errorf("bw recv: %v %v", rep.Values, err)
	}
	bmh, err := back.na.RegMr(back.send, dst, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	amh, err := back.nb.RegMr(back.recv, src, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	pong := p.b.Go(p.nb.Data, "lat", host.Args{"role", "pong", "send", back.send, "recv", p.recv, "smh", bmh, "rmh", rmh, "buf", dst, "iters", 50, "warm", 5})
	ping := p.a.Go(p.na.Data, "lat", host.Args{"role", "ping", "send", p.send, "recv", back.recv, "smh", smh, "rmh", amh, "buf", src, "iters", 50, "warm", 5})
	if rep, err := ping.Wait(); err != nil || rep.Int("p50") <= 0 {
		t.Errorf("ping: %v %v", rep.Values, err)
	}
	if rep, err := pong.Wait(); err != nil {
		t.Errorf("pong: %v %v", rep.Values, err)
	}
	exchange := func(h *host.Host, n *host.Net, send, recv host.Ptr) *host.Pending {
		at, err := h.Alloc(16)
		if err != nil {
			t.Fatal(err)
		}
		comms := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(send)), uint64(recv))
		if err := h.Write(at, comms); err != nil {
			t.Fatal(err)
		}
		return h.Go(n.Data, "conn.exchange", host.Args{"sends", at, "recvs", at + 8, "n", 1, "size", 100, "steps", 20, "warm", 2})
	}
	there, here := exchange(p.b, p.nb, back.send, p.recv), exchange(p.a, p.na, p.send, back.recv)
	for _, x := range []*host.Pending{here, there} {
		if rep, err := x.Wait(); err != nil || rep.Int("p50") <= 0 {
			t.Errorf("exchange: %v %v", rep.Values, err)
		}
	}
}
