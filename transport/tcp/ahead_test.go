package tcp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
	"weft/transport/tcp"
)

// A small send may leave before its receive is posted. Whatever comes then, it reaches the first receive of its tag.
func TestAheadFindsItsReceive(t *testing.T) {
	type group []int32 // tags of the receives
	for _, c := range []struct {
		what   string
		groups []group
		tag    int32
		group  int // where the message belongs
		entry  int
	}{
		{"the next receive", []group{{7}}, 7, 0, 0},
		{"a later group", []group{{1}, {2}, {7}}, 7, 2, 0},
		{"a later entry", []group{{1, 7, 7}}, 7, 0, 1},
		{"the first of two groups", []group{{1}, {7, 7}, {7}}, 7, 1, 0},
	} {
		for _, size := range []int{0, 8, 1024} {
			for _, posted := range []int{0, 1, len(c.groups)} { // groups that are posted before the message leaves
				t.Run(fmt.Sprintf("%s/%d bytes/%d posted", c.what, size, posted), func(t *testing.T) {
					tx, rx := connected(t, 1+size%3, 120)
					off := func(g, i int) int { return (g*8 + i) * 2000 }
					var receives []uintptr
					post := func(upTo int) {
						for g := len(receives); g < upTo; g++ {
							var bufs []hostcalls.Buf
							for i, tag := range c.groups[g] {
								bufs = append(bufs, rx.buf(off(g, i), 1500, tag))
							}
							r, rc := hostcalls.Irecv(rx.handle, bufs...)
							if rc != 0 || r == 0 {
								t.Fatalf("irecv returned %#x, %d", r, rc)
							}
							receives = append(receives, r)
						}
					}
					post(posted)
					copy(tx.mem, bytes.Repeat([]byte{0xaa}, size))
					first, rc := hostcalls.Isend(tx.handle, tx.buf(0, size, c.tag))
					if rc != 0 || first == 0 {
						t.Fatalf("isend returned %#x, %d", first, rc)
					}
					if _, rc := hostcalls.Finish(t, first); rc != 0 { // it waits for no receive
						t.Fatalf("the send ends with %d", rc)
					}
					post(len(c.groups))
					requests := slices.Clone(receives)
					for g, tags := range c.groups {
						for i, tag := range tags {
							if g == c.group && i == c.entry {
								continue
							}
							tx.mem[off(g, i)+5000] = byte(1 + g*8 + i)
							// the host's order: tags assign within the head group
							requests = append(requests, isend(t, tx, tx.buf(off(g, i)+5000, 1500, tag)))
						}
					}
					sizes, rc := hostcalls.Finish(t, requests...)
					if rc != 0 {
						t.Fatalf("code %d", rc)
					}
					for g, tags := range c.groups {
						for i := range tags {
							want, first := 1500, byte(1+g*8+i)
							if g == c.group && i == c.entry {
								want, first = size, 0xaa
							}
							if int(sizes[g][i]) != want || (want > 0 && rx.mem[off(g, i)] != first) {
								t.Errorf("group %d entry %d: %d bytes, first %#x", g, i, sizes[g][i], rx.mem[off(g, i)])
							}
						}
					}
				})
			}
		}
	}
}

// While a message waits for its receive the connection goes on with other tags, for longer than the executor remembers groups.
func TestAheadWaitsLong(t *testing.T) {
	tx, rx := connected(t, 2, 132)
	copy(tx.mem, "ahead")
	first, rc := hostcalls.Isend(tx.handle, tx.buf(0, 5, 7))
	if first == 0 || rc != 0 {
		t.Fatalf("isend returned %#x, %d", first, rc)
	}
	for i := range 1000 {
		var bufs []hostcalls.Buf
		n := 1 + i%8
		for k := range n {
			bufs = append(bufs, rx.buf(100+10*k, 8, int32(k%3)))
		}
		r, _ := hostcalls.Irecv(rx.handle, bufs...)
		requests := []uintptr{r}
		for k := range n {
			requests = append(requests, isend(t, tx, tx.buf(200, 8, int32(k%3))))
		}
		if _, rc := hostcalls.Finish(t, requests...); rc != 0 {
			t.Fatalf("group %d: code %d: %+v", i, rc, hostcalls.LastFault())
		}
	}
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 1), rx.buf(8, 8, 7), rx.buf(16, 8, 7))
	requests := []uintptr{r, first, isend(t, tx, tx.buf(200, 8, 7)), isend(t, tx, tx.buf(200, 8, 1))}
	if sizes, rc := hostcalls.Finish(t, requests...); rc != 0 || sizes[0][1] != 5 || string(rx.mem[8:13]) != "ahead" {
		t.Errorf("code %d, sizes %v, bytes %q", rc, sizes, rx.mem[8:13])
	}
}

// Messages that are ahead of their receives find them in the order of each tag, however many there are, whatever their sizes,
// whenever the receives are posted, and whatever the receiver keeps.
func TestAheadInOrder(t *testing.T) {
	for _, posted := range []string{"first", "late", "mixed"} {
		for _, n := range []int{1, 3} { // receives in a group
			for _, streams := range []int{1, 3} {
				t.Run(fmt.Sprintf("receives %s/groups of %d/%d streams", posted, n, streams), func(t *testing.T) {
					for _, stash := range []uint32{tcp.Stash, 20000, 1000, 0, 1 << 31} {
						aheadInOrder(t, posted, n, streams, stash)
					}
				})
			}
		}
	}
}

func aheadInOrder(t *testing.T, posted string, n, streams int, stash uint32) {
	t.Helper()
	tx, rx := connectedBy(t, socketpairs(t, streams), 134, stash)
	const messages, slots, slot = 900, 15, 270000
	seed := rand.New(rand.NewPCG(uint64(n), uint64(streams)))
	size := func(i int) int {
		return []int{0, 8, 600, 1024, 1025, 5000, 16385, 16384, 262144, 262145}[i*7%10] // of any kind
	}
	mark := func(b []byte, i int) {
		for k := range b {
			b[k] = byte(i + k)
		}
	}
	type receive struct {
		r     uintptr
		group int
	}
	var receives []receive
	var sends []uintptr
	sent, groups, done := 0, 0, 0
	full := false // the receiver keeps no more: a send waits for its receive
	for end := time.Now().Add(time.Minute); done < messages/n; {
		if time.Now().After(end) {
			t.Fatalf("stash of %d: %d of %d messages sent, %d receives posted, %d ended", stash, sent, messages, groups*n, done*n)
		}
		if late := posted == "late" && !full && sent < messages && sent-groups*n < 10 || posted == "mixed" && seed.IntN(3) == 0; !late && groups < messages/n && len(receives) < slots/n {
			var bufs []hostcalls.Buf
			for k := range n {
				i := groups*n + n - 1 - k // the tags of a group the other way round
				bufs = append(bufs, rx.buf(i%slots*slot, slot, int32(i%n)))
			}
			if r, rc := hostcalls.Irecv(rx.handle, bufs...); rc != 0 {
				t.Fatalf("irecv returned %d", rc)
			} else if r != 0 {
				receives = append(receives, receive{r, groups})
				groups++
			}
		}
		if sent < messages && sent-done*n < slots && len(sends) < 20 && seed.IntN(4) > 0 {
			b := tx.buf(sent%slots*slot, size(sent), int32(sent%n))
			mark(tx.mem[sent%slots*slot:][:size(sent)], sent)
			r, rc := hostcalls.Isend(tx.handle, b)
			if rc != 0 {
				t.Fatalf("isend %d returned %d", sent, rc)
			}
			if full = r == 0; !full {
				sends = append(sends, r)
				sent++
			}
		}
		if len(sends) > 0 {
			if over, _, rc := hostcalls.Test(sends[0]); rc != 0 {
				t.Fatalf("send ends with %d: %+v", rc, hostcalls.LastFault())
			} else if over {
				sends = sends[1:]
			}
		}
		if len(receives) == 0 {
			continue
		}
		over, sizes, rc := hostcalls.Test(receives[0].r)
		if rc != 0 {
			t.Fatalf("receive ends with %d: %+v", rc, hostcalls.LastFault())
		}
		if !over {
			continue
		}
		for k := range n {
			i := receives[0].group*n + n - 1 - k
			want := make([]byte, size(i))
			if mark(want, i); int(sizes[k]) != len(want) || !bytes.Equal(rx.mem[i%slots*slot:][:len(want)], want) {
				t.Fatalf("stash of %d: message %d: %d bytes of %d, or others", stash, i, sizes[k], len(want))
			}
		}
		receives = receives[1:]
		done++
	}
}

// Sends that wait for company leave when their host asks for anything: it may wait for the answer first.
func TestSmallSendsLeaveUntested(t *testing.T) {
	tx, rx := connected(t, 1, 135)
	for round := range 50 {
		var receives []uintptr
		for i := range 3 {
			r, _ := hostcalls.Irecv(rx.handle, rx.buf(8*i, 8, 0))
			receives = append(receives, r)
		}
		var sends []uintptr
		for range 3 {
			sends = append(sends, isend(t, tx, tx.buf(0, 8, 0)))
		}
		if _, rc := hostcalls.Finish(t, receives...); rc != 0 {
			t.Fatalf("round %d: the receives end with %d", round, rc)
		}
		if _, rc := hostcalls.Finish(t, sends...); rc != 0 {
			t.Fatalf("round %d: the sends end with %d", round, rc)
		}
	}
}

// frame is a header as it travels.
func frame(kind, entry byte, flags uint16, length, size uint32, tag, seq uint64) []byte {
	b := []byte{kind, entry, 0, 0, 0, 0}
	b = binary.LittleEndian.AppendUint16(b, flags)
	b = binary.LittleEndian.AppendUint32(b, length)
	b = binary.LittleEndian.AppendUint32(b, size)
	b = binary.LittleEndian.AppendUint64(b, tag)
	return binary.LittleEndian.AppendUint64(b, seq)
}

// A request whose group is refused in the middle of its bytes uses its memory: to deregister that memory ends the comm.
func TestDeregisterRefusedInMidStream(t *testing.T) {
	pair := func(t *testing.T) (tx, rx *side, fds [2]int) {
		t.Helper()
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		tx, rx = connectedBy(t, [2][]int{{p[0]}, {p[1]}}, 122, tcp.Stash)
		return tx, rx, p
	}
	poll := func(t *testing.T, r uintptr) {
		t.Helper()
		for range 8 {
			if done, _, rc := hostcalls.Test(r); done || rc != 0 {
				t.Fatalf("done %v, code %d", done, rc)
			}
		}
	}
	deregister := func(t *testing.T, s *side, r uintptr) {
		t.Helper()
		failed, err := fastpath.DeregisterMR(s.mr, 66)
		if err != nil || len(failed) != 1 || failed[0] != s.comm {
			t.Errorf("failed %v, %v", failed, err)
		}
		if done, _, rc := hostcalls.Test(r); done || rc != 66 {
			t.Errorf("done %v, code %d", done, rc)
		}
	}
	t.Run("receive", func(t *testing.T) {
		_, rx, fds := pair(t)
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 16, 0), rx.buf(16, 8, 1))
		poll(t, r) // its CTS is out
		write(t, fds[0], append(frame(4, 255, 0, 16, 16, 0, 1), "half of "...))
		poll(t, r)
		if ok, err := rx.comm.RefuseGroup(1, 55, func() {}); err != nil || !ok { // the sender refused the other message
			t.Fatal(err)
		}
		poll(t, r)
		deregister(t, rx, r)
		write(t, fds[0], []byte("sixteen."))
		hostcalls.Test(r)
		if !bytes.Equal(rx.mem[8:16], make([]byte, 8)) {
			t.Errorf("%q was written into memory that is not registered any more", rx.mem[8:16])
		}
	})
	t.Run("send", func(t *testing.T) {
		tx, _, fds := pair(t)
		for full := make([]byte, 4096); ; {
			if _, err := unix.Write(fds[0], full); err != nil {
				break
			}
		}
		r, rc := hostcalls.Isend(tx.handle, tx.buf(0, 16, 0))
		if r == 0 || rc != 0 {
			t.Fatalf("isend returned %#x, %d", r, rc)
		}
		write(t, fds[1], frame(2, 0, 1, 0, 8, 0, 1)) // its receive takes 8
		poll(t, r)
		deregister(t, tx, r)
	})
	t.Run("no bytes yet", func(t *testing.T) {
		_, rx, _ := pair(t)
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 16, 0))
		poll(t, r)
		if ok, err := rx.comm.RefuseGroup(1, 55, func() {}); err != nil || !ok {
			t.Fatal(err)
		}
		if failed, err := fastpath.DeregisterMR(rx.mr, 66); err != nil || len(failed) != 0 {
			t.Errorf("failed %v, %v", failed, err)
		}
		if done, _, rc := hostcalls.Test(r); !done || rc != 55 {
			t.Errorf("done %v, code %d", done, rc)
		}
	})
}
