package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/rdma"
)

// held is memory of one kind, cut into equal rooms that are registered one by one.
type held struct {
	data  []byte
	rooms []hostcalls.Buf
}

func hold(t *testing.T, c *Comm, kind rdma.MemKind, n, room int) (h held) {
	t.Helper()
	if kind == rdma.MemHost {
		h.data = buffer(t, n*room)
		for i := range n {
			h.rooms = append(h.rooms, register(t, c, h.data[i*room:(i+1)*room], room))
		}
		return h
	}
	mem := export(t, n*room, false)
	defer unix.Close(mem.fd)
	h.data = mem.data
	for i := range n {
		h.rooms = append(h.rooms, mem.lend(t, c, i*room, room, addrOf(mem.data)+uintptr(i*room), uint64(i*room), kind))
	}
	return h
}

// Groups arrive in the GPU's memory and the host's, from either, on a device made of three, whatever the order
// of their sends; and what has arrived in the GPU's can be flushed again and again.
func TestSimFusedMemory(t *testing.T) {
	env := map[string]string{"WEFT_STRIPE_MIN": "1024"}
	a, b := startSim(t, "=simA,simC,simX", env), startSim(t, "=simB,simD,simY", env)
	a.fusedWith(t, 0, 1, 2)
	b.fusedWith(t, 0, 1, 2)
	for _, c := range []struct{ from, to rdma.MemKind }{
		{rdma.MemCUDA, rdma.MemCUDA}, {rdma.MemCUDA, rdma.MemHost}, {rdma.MemHost, rdma.MemCUDA},
	} {
		t.Run(fmt.Sprint(c.from, " to ", c.to), func(t *testing.T) {
			s, r := pair(t, a, b)
			grown(t, s, r, 3)
			const width, room = 8, 20_000
			src, dst := hold(t, s, c.from, width, room), hold(t, r, c.to, width, room)
			for round := range 50 {
				for i := range src.data {
					src.data[i], dst.data[i] = byte(rand.Uint32()), 0
				}
				var sizes [width]int
				var into []hostcalls.Buf
				all := []*transfer{nil}
				for i := range width {
					sizes[i] = rand.IntN(room + 1)
					to := dst.rooms[i]
					to.Tag = int32(100*round + i)
					into = append(into, to)
				}
				for _, i := range rand.Perm(width) {
					from := src.rooms[i]
					from.Tag, from.Size = int32(100*round+i), uint64(sizes[i])
					all = append(all, send(s, from))
				}
				all[0] = recv(r, into...)
				drive(t, "a group", all...)
				for _, x := range all {
					if x.code != 0 {
						t.Fatalf("round %d: code %d", round, x.code)
					}
				}
				for range 3 {
					for _, to := range into {
						req, code := hostcalls.Iflush(r.Handle(), to)
						if code != 0 || (req != 0) != (c.to == rdma.MemCUDA) {
							t.Fatalf("round %d: flush: request %#x, code %d", round, req, code)
						}
						if req != 0 && until(t, "the flush ends", &transfer{req: req}) != 0 {
							t.Fatalf("round %d: the flush fails", round)
						}
					}
				}
				for i, n := range sizes {
					at := i * room
					if all[0].got[i] != int32(n) || !bytes.Equal(dst.data[at:at+n], src.data[at:at+n]) || bytes.Count(dst.data[at+n:at+room], []byte{0}) != room-n {
						t.Fatalf("round %d, receive %d: %d of %d bytes, or they differ", round, i, all[0].got[i], n)
					}
				}
			}
			noneLeft(t, s, r)
		})
	}
}

// A group is flushed as one, by its last buffer in the GPU's memory that brought something, wherever that stands in it;
// what is empty or in the host's memory needs none.
func TestSimFlushOfAGroup(t *testing.T) {
	_, _, s, r := simPair(t, nil)
	gpu, host := hold(t, r, rdma.MemCUDA, 2, 4096), hold(t, r, rdma.MemHost, 2, 4096)
	g, h := gpu.rooms, host.rooms
	empty := hostcalls.Buf{Addr: g[1].Addr}
	for _, c := range []struct {
		name string
		bufs []hostcalls.Buf
		want bool
	}{
		{"both in the GPU's", []hostcalls.Buf{g[0], g[1]}, true},
		{"the GPU's last", []hostcalls.Buf{h[0], g[0]}, true},
		{"the host's last", []hostcalls.Buf{g[0], h[0]}, true},
		{"the GPU's in the middle", []hostcalls.Buf{h[0], g[0], h[1]}, true},
		{"an empty one last", []hostcalls.Buf{g[0], empty}, true},
		{"an empty one first, the host's last", []hostcalls.Buf{empty, g[0], h[0]}, true},
		{"both in the host's", []hostcalls.Buf{h[0], h[1]}, false},
		{"an empty one of the GPU's", []hostcalls.Buf{h[0], empty}, false},
		{"nothing", []hostcalls.Buf{empty, empty}, false},
	} {
		in := []*transfer{recv(r, c.bufs...)}
		for range c.bufs {
			in = append(in, send(s, hostcalls.Buf{}))
		}
		drive(t, c.name, in...)
		req, code := hostcalls.Iflush(r.Handle(), c.bufs...)
		if code != 0 || (req != 0) != c.want {
			t.Errorf("%s: request %#x, code %d", c.name, req, code)
		}
		if req != 0 {
			if code := until(t, c.name+" is flushed", &transfer{req: req}); code != 0 {
				t.Errorf("%s: code %d", c.name, code)
			}
		}
	}
	noneLeft(t, s, r)
}

// NULL is no memory: a card refuses it, and over TCP what would be read or written there is refused.
func TestNullIsNoMemory(t *testing.T) {
	_, _, s, r := simPair(t, nil)
	for _, c := range []*Comm{s, r} {
		if h, err := c.RegMr(0, 4096, rdma.MemHost); err == nil || h != 0 {
			t.Errorf("over RDMA: registration %#x, %v", h, err)
		}
	}
	move(t, s, r, 1000)
	noneLeft(t, s, r)
	a, b := start(t, nil), start(t, nil)
	for _, sending := range []bool{true, false} {
		s, r := pair(t, a, b)
		c, post := s, send
		if !sending {
			c, post = r, func(c *Comm, b hostcalls.Buf) *transfer { return recv(c, b) }
		}
		h, err := c.RegMr(0, 4096, rdma.MemHost)
		if err != nil {
			t.Fatal(err)
		}
		x := post(c, hostcalls.Buf{Size: 4096, Handle: h})
		if sending {
			recv(r, register(t, r, buffer(t, 4096), 4096)).step()
		}
		if code := until(t, "what names NULL", x); code != testCode(&report.Error{Cause: report.Usage}, 0) && code != testCode(&report.Error{Cause: report.Misuse}, 0) {
			t.Errorf("over TCP, sending %v: code %d", sending, code)
		}
		s.Close()
		r.Close()
	}
}
