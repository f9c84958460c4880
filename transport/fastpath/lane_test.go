package fastpath_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"testing"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
)

var laneConfigs = []laneConfig{
	{lanes: 1, width: 1, stripeMin: 65536, depth: 64, inline: 512},
	{lanes: 1, width: 1, depth: 1, inline: 0, hideInline: true},
	{lanes: 4, width: 1, depth: 16, inline: 64},
	{lanes: 4, width: 2, stripeMin: 1000, depth: 16, inline: 128},
	{lanes: 4, width: 4, depth: 2, inline: 64, above: 8192, most: 4096},
	{lanes: 8, width: 8, stripeMin: 4096, depth: 64, inline: 512},
	{lanes: 8, width: 8, depth: 3, most: 1000, above: 100},
	{lanes: 32, width: 32, depth: 8, inline: 220},
}

func (c laneConfig) name() string {
	return fmt.Sprintf("%d lanes, width %d, stripe %d, depth %d, inline %d, most %d, AR %d", c.lanes, c.width, c.stripeMin, c.depth, c.inline, c.most, c.above)
}

// Groups of every width and messages of many sizes arrive, with their sizes, where they belong and nowhere else.
func TestLaneMessages(t *testing.T) {
	for _, c := range laneConfigs {
		t.Run(c.name(), func(t *testing.T) {
			p := laneProvider(t)
			c.size = 9 << 20
			tx, rx := laneConnected(t, p, c)
			rand.New(rand.NewSource(1)).Read(tx.mem)
			for round, size := range []int{0, 1, 7, 127, 128, 129, 1000, 4095, 4096, 4097, 65536, 65537, 1<<20 + 3, 8 << 20} {
				for n := 1; n <= 8; n++ {
					room := (9 << 20) / n
					if size > room-8 {
						break
					}
					var bufs []hostcalls.Buf
					for i := range n {
						bufs = append(bufs, rx.buf(i*room, size+5, int32(i%3)))
						clear(rx.mem[i*room : i*room+size+8])
					}
					r, rc := hostcalls.Irecv(rx.handle, bufs...)
					if rc != 0 || r == 0 {
						t.Fatalf("irecv returned %#x, %d", r, rc)
					}
					reqs := []uintptr{r}
					for i := range n {
						s, rc := hostcalls.Send(t, tx.handle, tx.buf(i*room+round, max(0, size-i), int32(i%3)))
						if rc != 0 {
							t.Fatalf("isend returned %d: %+v", rc, hostcalls.LastFault())
						}
						reqs = append(reqs, s)
					}
					sizes, rc := hostcalls.Finish(t, reqs...)
					if rc != 0 {
						t.Fatalf("size %d, %d receives: code %d: %+v", size, n, rc, hostcalls.LastFault())
					}
					for i := range n {
						want := max(0, size-i)
						if int(sizes[0][i]) != want || int(sizes[i+1][0]) != want {
							t.Fatalf("size %d, receive %d of %d: sizes %v", size, i, n, sizes)
						}
						if at := i * room; !bytes.Equal(tx.mem[at+round:at+round+want], rx.mem[at:at+want]) || !bytes.Equal(rx.mem[at+want:at+size+8], make([]byte, size+8-want)) {
							t.Fatalf("size %d, receive %d of %d: bytes differ", size, i, n)
						}
					}
				}
			}
			for _, s := range []*laneSide{tx, rx} {
				if got := s.comm.Snapshot(); got.Outstanding != 0 || got.Unsent != 0 || got.Incomplete != 0 || got.Code != 0 {
					t.Errorf("%+v", got)
				}
				for i, l := range s.comm.LaneStates(nil) {
					if gap := l.Posted - l.Completed; gap > uint32(c.depth) || s == tx && gap != 0 {
						t.Errorf("lane %d: %+v", i, l)
					}
				}
			}
		})
	}
}

// Many groups are under way at once, past the end of the ring and the first 4096 groups.
func TestLaneWindow(t *testing.T) {
	for _, c := range laneConfigs {
		t.Run(c.name(), func(t *testing.T) {
			tx, rx := laneConnected(t, laneProvider(t), c)
			const slots, groups = 24, 4500
			var recvs, sends [slots]uintptr
			for g := range groups + slots {
				at := g % slots
				if g >= slots {
					sizes, rc := hostcalls.Finish(t, recvs[at], sends[at])
					if want := (g - slots) % 300; rc != 0 || int(sizes[0][0]) != want || rx.mem[at*4096] != byte(g-slots) && want > 0 {
						t.Fatalf("group %d: %v, code %d, %+v", g-slots, sizes, rc, hostcalls.LastFault())
					}
				}
				if g >= groups {
					continue
				}
				var rc int32
				n := 1
				if recvs[at], rc = hostcalls.Irecv(rx.handle, rx.buf(at*4096, 300, 5)); rc != 0 || recvs[at] == 0 {
					t.Fatalf("irecv %d returned %#x, %d", g, recvs[at], rc)
				}
				tx.mem[at*4096] = byte(g)
				if sends[at], rc = hostcalls.Send(t, tx.handle, tx.buf(at*4096, g%300, 5)); rc != 0 || n != 1 {
					t.Fatalf("isend %d returned %d, %+v", g, rc, hostcalls.LastFault())
				}
			}
		})
	}
}

func TestLaneRefusal(t *testing.T) {
	tx, rx := laneConnected(t, laneProvider(t), laneConfigs[0])
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 10, 0))
	s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, 11, 0))
	if f := hostcalls.LastFault(); rc != 0 || f.Kind != 4 || f.Got != 11 || f.Want != 10 {
		t.Fatalf("code %d, %+v", rc, f)
	}
	ring := bytes.Clone(rx.ring())
	if ok, err := rx.comm.RefuseGroup(hostcalls.LastFault().Seq, 5, func() {}); err != nil || !ok {
		t.Fatal(err)
	}
	if !bytes.Equal(ring, rx.ring()) {
		t.Error("the refusal is written where the peer writes")
	}
	if _, rc := hostcalls.Finish(t, r); rc != 5 {
		t.Errorf("receive ends with %d", rc)
	}
	if _, rc := hostcalls.Finish(t, s); rc != 104 {
		t.Errorf("send ends with %d", rc)
	}
	r, _ = hostcalls.Irecv(rx.handle, rx.buf(0, 11, 0))
	s, _ = hostcalls.Send(t, tx.handle, tx.buf(0, 11, 0))
	if sizes, rc := hostcalls.Finish(t, r, s); rc != 0 || sizes[0][0] != 11 {
		t.Errorf("afterwards: %v, %d", sizes, rc)
	}
}

// What the peer writes into the ring is checked.
func TestLaneHostileCTS(t *testing.T) {
	p := laneProvider(t)
	for _, bad := range []struct {
		name     string
		n, i     uint32
		size     uint64
		seq      uint64
		wantCode int32
	}{
		{"no receives", 0, 0, 10, 1, 103},
		{"nine receives", 9, 0, 10, 1, 103},
		{"65535 receives", 65535, 0, 10, 1, 103},
		{"wrong index", 1, 1, 10, 1, 103},
		{"huge size", 1, 0, 1 << 31, 1, 103},
		{"later group", 1, 0, 10, 2, 103},
		{"last group", 1, 0, 10, 1<<64 - 1, 103},
	} {
		t.Run(bad.name, func(t *testing.T) {
			tx, _ := laneConnected(t, p, laneConfigs[0])
			line := tx.ring()[:64]
			binary.LittleEndian.PutUint64(line[8:], bad.size)
			binary.LittleEndian.PutUint32(line[52:], bad.n<<16|bad.i)
			binary.LittleEndian.PutUint64(line[56:], bad.seq)
			s, _ := hostcalls.Send(t, tx.handle, tx.buf(0, 1, 0))
			if _, _, rc := hostcalls.Test(s); rc != bad.wantCode {
				t.Errorf("test returned %d, %+v", rc, hostcalls.LastFault())
			}
			if tx.comm.Snapshot().Code != bad.wantCode {
				t.Error("the comm lives")
			}
		})
	}
}

func TestLaneFlush(t *testing.T) {
	for _, always := range []bool{false, true} {
		c := laneConfigs[3]
		c.flush, c.flushAlways = true, always
		tx, rx := laneConnected(t, laneProvider(t), c)
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 5000, 0))
		s, _ := hostcalls.Send(t, tx.handle, tx.buf(0, 5000, 0))
		if _, rc := hostcalls.Finish(t, r, s); rc != 0 {
			t.Fatal(rc, hostcalls.LastFault())
		}
		var flushes []uintptr
		for i := range 20 { // more than the queues hold
			f, rc := hostcalls.Iflush(rx.handle, rx.buf(i, 5000, 0))
			if rc != 0 || (f != 0) != always {
				t.Fatalf("iflush returned %#x, %d, %+v", f, rc, hostcalls.LastFault())
			}
			if f != 0 {
				flushes = append(flushes, f)
			}
		}
		if _, rc := hostcalls.Finish(t, flushes...); rc != 0 {
			t.Error(rc, hostcalls.LastFault())
		}
		if f, rc := hostcalls.Iflush(rx.handle, rx.buf(0, 0, 0)); f != 0 || rc != 0 {
			t.Errorf("nothing to flush: %#x, %d", f, rc)
		}
	}
}

// An error of the device ends the comm with its cause; a fence flushes.
func TestLaneFaults(t *testing.T) {
	p := laneProvider(t)
	t.Run("completion", func(t *testing.T) {
		tx, rx := laneConnected(t, p, laneConfigs[0])
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
		_, _, _ = hostcalls.Test(r)
		rx.regions[1].Release() // what the CTS names is gone: the write is refused
		rx.regions[3].Release()
		rx.regions = append(rx.regions[:1:1], rx.regions[2])
		s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, 50, 0))
		if rc == 0 {
			_, rc = hostcalls.Finish(t, s)
		}
		if f := hostcalls.LastFault(); rc != 109 || f.Err != 10 || f.Want>>60 != 1 {
			t.Errorf("code %d, %+v", rc, f)
		}
	})
	t.Run("post", func(t *testing.T) {
		tx, rx := laneConnected(t, p, laneConfigs[0])
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
		_, _, _ = hostcalls.Test(r)
		command(t, "fail post_send 1 ENOMEM")
		s, _ := hostcalls.Send(t, tx.handle, tx.buf(0, 50, 0))
		command(t, "fail post_send 1000000 EIO")
		_, _, rc := hostcalls.Test(s)
		if f := hostcalls.LastFault(); rc != 110 || f.Err != 12 || f.Where != "ibv_post_send" {
			t.Errorf("code %d, %+v", rc, f)
		}
	})
	t.Run("fence", func(t *testing.T) {
		tx, rx := laneConnected(t, p, laneConfigs[0])
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
		s, _ := hostcalls.Send(t, tx.handle, tx.buf(0, 50, 0))
		if _, rc := hostcalls.Finish(t, s); rc != 0 {
			t.Fatal(rc)
		}
		if read, err := rx.comm.Drain(); read != nil || err != nil { // what arrived is done, although the comm fails
			t.Fatal(read, err)
		}
		rx.comm.Fail(7)
		if sizes, rc := hostcalls.Finish(t, r); rc != 0 || sizes[0][0] != 50 {
			t.Errorf("code %d, %v", rc, sizes)
		}
		r, _ = hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
		if _, _, rc := hostcalls.Test(r); rc != 7 {
			t.Errorf("test of an irecv after the end returned %d", rc)
		}
		tx, rx = laneConnected(t, p, laneConfigs[0])
		r, _ = hostcalls.Irecv(rx.handle, rx.buf(0, 50, 0))
		if err := rx.qps[0].Fence(); err != nil {
			t.Fatal(err)
		}
		if _, rc := hostcalls.Finish(t, r); rc != 109 || hostcalls.LastFault().Err != 5 {
			t.Errorf("code %d, %+v", rc, hostcalls.LastFault())
		}
		_ = tx
	})
}

func TestLanePlansThatAreWrong(t *testing.T) {
	p := laneProvider(t)
	for name, spoil := range map[string]func(*fastpath.VerbsPlan){
		"no lanes":    func(p *fastpath.VerbsPlan) { p.Lanes = nil },
		"no width":    func(p *fastpath.VerbsPlan) { p.Width = 0 },
		"wide":        func(p *fastpath.VerbsPlan) { p.Width = 99 },
		"no peer key": func(p *fastpath.VerbsPlan) { p.PeerKeys = nil },
		"device":      func(p *fastpath.VerbsPlan) { p.Lanes[0].PeerDevice = 1 },
		"ring":        func(p *fastpath.VerbsPlan) { p.Peer = 4 },
		"queue":       func(p *fastpath.VerbsPlan) { p.Lanes[2].CQ = p.Lanes[1].CQ },
	} {
		tx, _ := laneEnds(t, p, laneConfigs[2])
		tx.plan.Peer, tx.plan.PeerKeys = 64, []uint32{1}
		if spoil(&tx.plan); fastpath.AttachVerbs(tx.comm, &tx.plan) == nil {
			t.Errorf("%s: attached", name)
		}
	}
}
