package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/lanes"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// ports3 are comms over three pairs of ports, of which the first alone is there at connect.
var ports3 = map[string]string{"WEFT_LAZY": "demand", "WEFT_STRIPE_MIN": "1024", "WEFT_FLUSH": "always"}

// fusedThree are two processes whose devices are three ports each.
func fusedThree(t *testing.T, env map[string]string) (a, b *process) {
	t.Helper()
	a, b = startSim(t, "=simA,simC,simX", env), startSim(t, "=simB,simD,simY", env)
	for _, p := range []*process{a, b} {
		p.fusedWith(t, 0, 1, 2)
	}
	return a, b
}

// window is messages of which some are always announced before they are sent.
type window struct {
	t        *testing.T
	s, r     *Comm
	src, dst []byte
	from, to hostcalls.Buf
	ahead    []*transfer
	posted   int
	sent     int
}

const windowSlot = 1 << 17

// slot is where message n lies: sizes go round, so that some are small, some are
// shared by lanes, and none is where another one is.
func (w *window) slot(b hostcalls.Buf, n int) hostcalls.Buf {
	sizes := []uint64{1, 100, 1024, 1025, 4097, 70_001, windowSlot}
	b.Addr, b.Size = b.Addr+uintptr(n%16)*windowSlot, sizes[n%len(sizes)]
	return b
}

// post announces messages.
func (w *window) post(n int) {
	for range n {
		in := recv(w.r, w.slot(w.to, w.posted))
		eventually(w.t, "a receive is posted", func() bool { in.step(); return in.req != 0 })
		w.ahead, w.posted = append(w.ahead, in), w.posted+1
	}
}

// send sends the next message and looks at every byte.
func (w *window) send() {
	w.t.Helper()
	out, in := w.slot(w.from, w.sent), w.slot(w.to, w.sent)
	at := int(out.Addr - w.from.Addr)
	for i := range int(out.Size) {
		w.src[at+i] = byte(w.sent*31 + i*7 + i>>8)
	}
	x := send(w.s, out)
	drive(w.t, fmt.Sprintf("message %d of %d bytes", w.sent, out.Size), x, w.ahead[0])
	if x.code != 0 || w.ahead[0].code != 0 || !bytes.Equal(w.dst[at:at+int(in.Size)], w.src[at:at+int(in.Size)]) {
		w.t.Fatalf("message %d of %d bytes: codes %d and %d, or bytes differ", w.sent, out.Size, x.code, w.ahead[0].code)
	}
	w.ahead, w.sent = w.ahead[1:], w.sent+1
}

// Ports that join while messages are under way get the memory that the host
// registered before, and carry only what was announced with keys for them.
func TestSimPortsJoinUnderLoad(t *testing.T) {
	for _, dma := range []bool{false, true} {
		t.Run(fmt.Sprintf("DMA-BUF %v", dma), func(t *testing.T) {
			a, b := fusedThree(t, ports3)
			s, r := pair(t, a, b)
			grow := halted(t, s)
			w := &window{t: t, s: s, r: r, src: buffer(t, 16*windowSlot), dst: buffer(t, 16*windowSlot)}
			if dma {
				src, dst := export(t, 16*windowSlot, false), export(t, 16*windowSlot, false)
				w.src, w.dst = src.data, dst.data
				w.from, w.to = src.lend(t, s, 0, 16*windowSlot, addrOf(src.data), 0, rdma.MemCUDA), dst.lend(t, r, 0, 16*windowSlot, addrOf(dst.data), 0, rdma.MemCUDA)
				unix.Close(src.fd)
				unix.Close(dst.fd)
			} else {
				w.from, w.to = register(t, s, w.src, 0), register(t, r, w.dst, 0)
			}
			w.post(16)
			for range 8 {
				w.send()
			}
			w.post(8)
			grow()
			eventually(t, "the receiver has the lanes", func() bool { return len(posted(r)) == 3 })
			eventually(t, "the sender knows of them", func() bool {
				return len(numbersOf(s)) == 3
			})
			for range 16 { // announced before
				if n := len(posted(s)); n != 1 {
					t.Fatalf("%d lanes for messages that were announced to one", n)
				}
				w.send()
			}
			w.post(8)
			for range 300 {
				w.post(1)
				w.send()
			}
			for i, n := range posted(s) {
				if n == 0 {
					t.Errorf("lane %d carries nothing", i)
				}
			}
			for len(w.ahead) > 0 {
				w.send()
			}
			late := register(t, r, buffer(t, windowSlot), windowSlot) // on all of its ports at once
			drive(t, "memory registered later", recv(r, late), send(s, register(t, s, buffer(t, windowSlot), windowSlot)))
			if code := until(t, "a flush ends", begun(t, r, late)); code != 0 || len(loopsOf(t, r)) != 3 {
				t.Errorf("code %d, by %d ports", code, len(loopsOf(t, r)))
			}
			noneLeft(t, s, r)
			fusedIdle(t, a, b)
		})
	}
}

// A flush that waits for its queue pair while ports join reads where its data can
// have come by, and later ones everywhere.
func TestSimPortsJoinWhileAFlushWaits(t *testing.T) {
	a, b := fusedThree(t, slowFlush(ports3))
	s, r := pair(t, a, b)
	probed(t, a, b)
	grow := halted(t, s)
	to := register(t, r, buffer(t, 4096), 4096)
	from := register(t, s, buffer(t, 4096), 4096)
	drive(t, "data", recv(r, to), send(s, from))
	x := begunSlowly(t, b, r, to)
	grow()
	grown(t, s, r, 3)
	y := begun(t, r, to)
	for range 100 {
		x.step()
		y.step()
	}
	if x.done || y.done {
		t.Error("a flush is done by a port that cannot flush")
	}
	drive(t, "flushes", x, y)
	if x.code != 0 || y.code != 0 || len(loopsOf(t, r)) != 3 {
		t.Errorf("codes %d and %d, by %d ports", x.code, y.code, len(loopsOf(t, r)))
	}
	noneLeft(t, s, r)
}

// Whatever fails on the way to a further port, the comm goes on with the others
// that come, and leaves nothing.
func TestSimPortsThatCannotJoin(t *testing.T) {
	a, b := fusedThree(t, with(ports3, "NCCL_IB_QPS_PER_CONNECTION", "2"))
	keeper, other := pair(t, a, b)
	probed(t, a, b)
	for _, f := range []struct {
		function string
		most     int // calls on both sides; more do not fail
	}{
		{"create_cq", 4}, {"create_qp", 12}, {"modify_qp", 36}, {"reg_mr", 8}, {"reg_mr_iova2", 8}, {"post_recv", 40}, {"post_send", 2}, {"poll_cq", 6}, {"query_ece", 10},
	} {
		failed := 0
		for n := 1; n <= f.most; n += 1 + n/4 {
			s, r := pair(t, a, b)
			mem := register(t, s, buffer(t, 1<<20), 1<<20)
			grow := wanting(t, s, r)
			before := a.log.Count("INFO", "goes on with") + a.log.Count("INFO", "has 6 lanes now")
			left := a.log.Count("INFO", "goes on with")
			command(t, fmt.Sprintf("fail %s %d EIO", f.function, n))
			grow()
			eventually(t, "it is said", func() bool {
				return a.log.Count("INFO", "goes on with")+a.log.Count("INFO", "has 6 lanes now") == before+1
			})
			command(t, fmt.Sprintf("fail %s 1 EIO 0", f.function))
			failed += a.log.Count("INFO", "goes on with") - left
			for _, size := range []int{10, 5000, 1 << 20} {
				move(t, s, r, size)
			}
			if x, y := len(posted(s)), len(posted(r)); x < 1 || y < x {
				t.Errorf("%s %d: %d lanes and %d", f.function, n, x, y)
			}
			if err := s.DeregMr(mem.Handle); err != nil {
				t.Error(err)
			}
			s.Close()
			r.Close()
			over(t, s, r)
			a.pool.Empty() // the next comm is to grow too
			b.pool.Empty()
			rested(s)
		}
		t.Logf("%s: %d times without some", f.function, failed)
	}
	noneLeft(t, keeper, other)
	noQPLeft(t, a, b)
}

// A pair that packets do not pass is left out on both sides, and the others join.
func TestSimPortsThatAreSilent(t *testing.T) {
	a, b := fusedThree(t, ports3)
	s, r := pair(t, a, b)
	grow := wanting(t, s, r)
	command(t, "blackhole simD both")
	grow()
	grown(t, s, r, 2)
	eventually(t, "it is said", func() bool {
		return a.log.Count("INFO", "goes on with 2 of 3 lanes: simC to the peer's device 1") == 1 && b.log.Count("INFO", "goes on with 2 of 3 lanes") == 1
	})
	for _, size := range []int{10, 5000, 1 << 20} {
		move(t, s, r, size)
	}
	silent, ports := overRDMA(s).Pairs[1].Local.Name, portsOf(s)
	if len(ports) != 2 || slices.Contains(ports, silent) {
		t.Errorf("the silent port is part of the comm: %v", ports)
	}
	eventually(t, "nothing is left on the silent port", func() bool { return len(qpsOn(t, silent)) == 0 })
	next, nextIn := pair(t, a, b)
	command(t, "blackhole simD off")
	if a.log.Count("INFO", "simC to its device 1", "left out", "it failed") != 1 {
		t.Errorf("%q", a.log.Lines())
	}
	noneLeft(t, s, r, next, nextIn)
}

// A comm that ends while ports join leaves nothing: no queue, no memory.
func TestSimPortsJoinAnEnd(t *testing.T) {
	a, b := fusedThree(t, ports3)
	ends := []func(s, r *Comm){
		func(s, r *Comm) { s.Close(); r.Close() },
		func(s, r *Comm) { r.Close(); s.Close() },
		func(s, r *Comm) { s.Fail(errAbandoned); s.Close(); r.Close() },
		func(s, r *Comm) { r.Fail(errAbandoned); s.Close(); r.Close() },
		func(s, r *Comm) { s.Member().Session.Conn.Close(); s.Close(); r.Close() },
		func(s, r *Comm) {
			command(t, "event simX DEVICE_FATAL")
			s.Close()
			r.Close()
		},
	}
	for i := range 60 {
		s, r := pair(t, a, b)
		if !overVerbs(s) {
			t.Fatalf("%q", a.log.Lines())
		}
		register(t, s, buffer(t, 1<<16), 1<<16)
		growing(t, s, r)
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		ends[i%len(ends)](s, r)
	}
	noneLeft(t)
	fusedIdle(t, a, b)
}

// fusedIdle fails the test where the processes' fused devices are not through with all.
func fusedIdle(t *testing.T, all ...*process) {
	t.Helper()
	for _, p := range all {
		if d := p.Devices()[3]; d.Ports.Busy() || p.registered(d) > 0 {
			t.Errorf("%s is in use", d.Name)
		}
	}
}

// A card that fails while its port is being added is left out; the comm lives.
func TestSimPortsJoinAFailingCard(t *testing.T) {
	a, b := fusedThree(t, ports3)
	s, r := pair(t, a, b)
	grow := wanting(t, s, r)
	before := objects(t).QPs
	command(t, "slow create_qp 300000")
	defer command(t, "slow create_qp 0")
	grow()
	eventually(t, "the first of its queue pairs", func() bool { return objects(t).QPs > before })
	command(t, "event simX DEVICE_FATAL")
	eventually(t, "it is left out", func() bool { return a.log.Count("INFO", "goes on with 1 of 3 lanes") == 1 })
	command(t, "slow create_qp 0")
	if s.Over() || len(posted(s)) != 1 {
		t.Errorf("over %v, %d lanes", s.Over(), len(posted(s)))
	}
	move(t, s, r, 1<<20)
	noneLeft(t, s, r)
	eventually(t, "the card's return", func() bool { return a.Devices()[2].Verbs.Down() == "" })
}

// What a peer must not offer of further ports is refused, and so is what it must not join.
func TestSimPortsRefused(t *testing.T) {
	for what, spoil := range map[string]func(o *offering, lanes []wire.QPEnd) []wire.QPEnd{
		"a slot twice":       func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[1].Slot = l[0].Slot; return l },
		"the first's slot":   func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[0].Slot = 0; return l },
		"the pair crossed":   func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[0].Peer = l[1].Peer; return l },
		"another GID":        func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[0].GID = l[1].GID; return l },
		"the same pair more": func(o *offering, l []wire.QPEnd) []wire.QPEnd { return append(l, l[0]) },
		"nothing wrong":      nil,
	} {
		t.Run(what, func(t *testing.T) {
			a, b := fusedThree(t, ports3)
			o := between(t, a, b)
			s, r := pair(t, a, b)
			lanes := o.honest(s, r)
			if spoil != nil {
				lanes = spoil(o, lanes)
			}
			o.judged(s, r, lanes, spoil == nil, 1|1<<7)
		})
	}
}

// Of two ports here and one there, or the other way round, the side whose port is
// new proves the pair.
func TestSimPortsOfOneSide(t *testing.T) {
	for _, c := range []struct{ here, there, silent string }{{"=simA", "=simB,simF", "simF"}, {"=simB,simF", "=simA", "simF"}} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s to %s, silent %v", c.here, c.there, silent), func(t *testing.T) {
				a, b := startSim(t, c.here, ports3), startSim(t, c.there, nil)
				for _, p := range []*process{a, b} {
					if len(p.Devices()) == 2 {
						p.fusedWith(t, 0, 1)
					}
				}
				s, r := pair(t, a, b)
				grow := wanting(t, s, r)
				want := 2
				if silent {
					command(t, "blackhole "+c.silent+" both")
					want = 1
				}
				grow()
				eventually(t, "it is said", func() bool {
					return a.log.Count("INFO", "has 2 lanes now")+a.log.Count("INFO", "goes on with 1 of 2 lanes") == 1
				})
				command(t, "blackhole "+c.silent+" off")
				for _, size := range []int{10, 5000, 1 << 20} {
					move(t, s, r, size)
				}
				if n := len(posted(s)); n != want {
					t.Errorf("%d lanes: %q", n, a.log.Lines())
				}
				if why := s.Member().Session.Ports.Failure(&s.Carrier().(*lanes.Carrier).Pairs[1]); (why != nil) != silent {
					t.Errorf("the next connect leaves it alone: %v", why)
				}
				noneLeft(t, s, r)
			})
		}
	}
}
