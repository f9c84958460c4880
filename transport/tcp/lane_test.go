package tcp_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
	"weft/transport/tcp"
)

func TestBytesArrive(t *testing.T) {
	for _, streams := range []int{1, 2, 8, 64} {
		for _, size := range []int{0, 1, 7, 1023, 1024, 1025, 4096, 65537, 1<<20 + 3} {
			t.Run(fmt.Sprintf("%d streams/%d bytes", streams, size), func(t *testing.T) {
				tx, rx := connected(t, streams, 100)
				rand.New(rand.NewSource(int64(size))).Read(tx.mem[:size])
				room := size + 5
				r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, room, 3))
				if rc != 0 || r == 0 {
					t.Fatalf("irecv returned %#x, %d", r, rc)
				}
				// both ends are this thread's: the receive's CTS leaves when isend finds nothing
				s := isend(t, tx, tx.buf(0, size, 3))
				sizes, rc := hostcalls.Finish(t, s, r)
				if rc != 0 || int(sizes[0][0]) != size || int(sizes[1][0]) != size {
					t.Fatalf("sizes %v, code %d", sizes, rc)
				}
				if !bytes.Equal(tx.mem[:size], rx.mem[:size]) || !bytes.Equal(rx.mem[size:room], make([]byte, 5)) {
					t.Fatal("bytes differ")
				}
				if got := rx.comm.Snapshot(); got != (fastpath.Stats{Messages: 1, Bytes: uint64(size), Announced: 1}) {
					t.Fatalf("snapshot %+v", got)
				}
			})
		}
	}
}

func TestGroupedReceivesByTag(t *testing.T) {
	tx, rx := connected(t, 2, 101)
	// Two groups: tags repeat inside a group and across groups; sends come in another order.
	var reqs []uintptr
	for g := range 2 {
		var bufs []hostcalls.Buf
		for i := range 8 {
			bufs = append(bufs, rx.buf(g*1<<20+i*1000, 1000, int32(i/2)))
		}
		r, rc := hostcalls.Irecv(rx.handle, bufs...)
		if rc != 0 || r == 0 {
			t.Fatalf("irecv returned %#x, %d", r, rc)
		}
		reqs = append(reqs, r)
	}
	order := []int32{3, 0, 2, 1, 1, 0, 3, 2}
	next := map[int32]int{}
	for g := range 2 {
		clear(next)
		for i, tag := range order {
			entry := int(tag)*2 + next[tag]
			next[tag]++
			off := (g*8 + i) * 1000
			for k := range 1000 {
				tx.mem[off+k] = byte(g*100 + entry)
			}
			reqs = append(reqs, isend(t, tx, tx.buf(off, 900+entry, tag)))
		}
	}
	sizes, rc := hostcalls.Finish(t, reqs...)
	if rc != 0 {
		t.Fatalf("code %d", rc)
	}
	for g := range 2 {
		for i := range 8 {
			if int(sizes[g][i]) != 900+i || rx.mem[g*1<<20+i*1000] != byte(g*100+i) {
				t.Errorf("group %d entry %d: %d bytes of %d", g, i, sizes[g][i], rx.mem[g*1<<20+i*1000])
			}
		}
	}
}

// Two ranks post a receive each and then only repeat isend: the receives' CTS must leave from there.
func TestRepeatedIsendSendsTheCTS(t *testing.T) {
	tx0, rx1 := connected(t, 1, 110)
	tx1, rx0 := connected(t, 1, 110)
	var wg sync.WaitGroup
	for _, rank := range []struct{ tx, rx *side }{{tx0, rx0}, {tx1, rx1}} {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r, rc := hostcalls.Irecv(rank.rx.handle, rank.rx.buf(0, 8, 0))
			if rc != 0 || r == 0 {
				t.Errorf("irecv returned %#x, %d", r, rc)
				return
			}
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
				if s, rc := hostcalls.Isend(rank.tx.handle, rank.tx.buf(0, 8, 0)); s != 0 || rc != 0 {
					return
				}
			}
			t.Error("isend is never taken")
		})
	}
	wg.Wait()
}

func TestLimits(t *testing.T) {
	tx, rx := connected(t, 1, 111)
	var sends, receives []uintptr
	for {
		r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, 0, 0))
		if rc != 0 {
			t.Fatalf("irecv returned %d", rc)
		}
		if r == 0 {
			break
		}
		receives = append(receives, r)
	}
	for idle := 0; idle < 100; {
		s, rc := hostcalls.Isend(tx.handle, tx.buf(0, 0, 0))
		if rc != 0 {
			t.Fatalf("isend returned %d", rc)
		}
		if s == 0 {
			idle++
			continue
		}
		sends = append(sends, s)
	}
	if len(receives) != 256 || len(sends) != 256 {
		t.Fatalf("%d receives and %d sends were taken", len(receives), len(sends))
	}
	if _, rc := hostcalls.Finish(t, append(sends, receives...)...); rc != 0 {
		t.Fatalf("code %d", rc)
	}
	if tx.comm.Snapshot().Outstanding != 0 || rx.comm.Snapshot().Outstanding != 0 {
		t.Error("slots leak")
	}
}

func TestPeerCloses(t *testing.T) {
	for _, gone := range []string{"sender", "receiver"} {
		tx, rx := connected(t, 1, 112)
		r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 4<<20, 0))
		first := isend(t, tx, tx.buf(0, 4<<20, 0)) // more than a socket pair takes
		end, request := rx, r
		if gone == "receiver" {
			end, request = tx, first
		}
		other := map[*side]*side{tx: rx, rx: tx}[end]
		fds, _ := tcp.DetachStreams(other.comm)
		if err := unix.Shutdown(fds[0], unix.SHUT_RDWR); err != nil {
			t.Fatal(err)
		}
		if err := tcp.AttachStreams(other.comm, 0, fds, tcp.Stash); err != nil { // for the cleanup
			t.Fatal(err)
		}
		if _, rc := hostcalls.Finish(t, request); rc == 0 {
			t.Errorf("the %s closed, and nobody noticed", gone)
		}
		if end.comm.Snapshot().Code == 0 {
			t.Errorf("the %s closed, and the comm lives", gone)
		}
	}
}

func TestWrongTagWaits(t *testing.T) {
	tx, rx := connected(t, 1, 102)
	const size = waitsForCTS
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, size, 1))
	for range 100 {
		if s, rc := hostcalls.Isend(tx.handle, tx.buf(0, size, 2)); s != 0 || rc != 0 {
			t.Fatalf("a send of another tag returned %#x, %d", s, rc)
		}
	}
	if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, size, 1)), r); rc != 0 {
		t.Fatalf("code %d", rc)
	}
}

func TestRefusal(t *testing.T) {
	tx, rx := connected(t, 1, 103)
	const size = waitsForCTS
	bad, _ := hostcalls.Irecv(rx.handle, rx.buf(0, size, 0), rx.buf(size, size, 1))
	good, _ := hostcalls.Irecv(rx.handle, rx.buf(3*size, 8, 0))
	first := isend(t, tx, tx.buf(0, size, 0))
	second := isend(t, tx, tx.buf(0, size+1, 1)) // too large: the whole group is refused
	// The core's part: it had the other side told.
	if ok, err := rx.comm.RefuseGroup(1, 55, func() {}); err != nil || !ok {
		t.Fatal(err)
	}
	for _, r := range []uintptr{first, second} {
		if _, rc := hostcalls.Finish(t, r); rc == 0 {
			t.Error("a send of the refused group ends well")
		}
	}
	if done, _, rc := hostcalls.Test(bad); !done || rc != 55 {
		t.Errorf("the refused receive: done %v, code %d", done, rc)
	}
	if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, 8, 0)), good); rc != 0 {
		t.Fatalf("the comm must live on: code %d", rc)
	}
}

// A refusal that comes late must not end a receive of the comm that has the
// slab by then.
func TestRefusalOfAFormerComm(t *testing.T) {
	var former [2]*fastpath.Comm
	for i := range former {
		c, err := fastpath.New(fastpath.Options{Kind: fastpath.Recv, Device: 120})
		if err != nil {
			t.Fatal(err)
		}
		former[i] = c
	}
	for _, c := range former {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c.Free()
	}
	tx, rx := connected(t, 1, 120) // in the slabs just freed
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
	hostcalls.Test(r) // its CTS is out
	for _, c := range former {
		if _, err := c.RefuseGroup(1, 55, func() {}); err == nil {
			t.Error("a former comm refused a group")
		}
	}
	if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, 8, 0)), r); rc != 0 {
		t.Errorf("the receive of the slab's next comm ended with %d", rc)
	}
}

func TestDeregisterInFlight(t *testing.T) {
	tx, rx := connected(t, 1, 104)
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
	idle, _ := connected(t, 1, 104)
	failed, err := fastpath.DeregisterMR(rx.mr, 66)
	if err != nil || len(failed) != 1 || failed[0] != rx.comm {
		t.Fatalf("failed %v, %v", failed, err)
	}
	if _, _, rc := hostcalls.Test(r); rc != 66 {
		t.Errorf("test returned %d", rc)
	}
	if _, err := fastpath.DeregisterMR(rx.mr, 66); err == nil {
		t.Error("a registration ended twice")
	}
	if code := idle.comm.Snapshot().Code; code != 0 {
		t.Errorf("a comm that did not use it failed with %d", code)
	}
	if r, rc := hostcalls.Isend(tx.handle, hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr, Size: 8, Handle: rx.mr}); r != 0 || rc == 0 {
		t.Errorf("memory that is registered no more: isend returned %#x, %d", r, rc)
	}
}

func TestCloseWithRequestsInFlight(t *testing.T) {
	tx, rx := connected(t, 1, 105)
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 1<<20, 0))
	s := isend(t, tx, tx.buf(0, 1<<20, 0))
	for _, c := range []*side{rx, tx} {
		if err := c.comm.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.comm.Close(); err == nil {
			t.Error("closed twice")
		}
		if _, err := fastpath.Lookup(c.handle); err == nil {
			t.Error("a closed handle was found")
		}
	}
	for _, q := range []uintptr{r, s} {
		if done, _, rc := hostcalls.Test(q); done || rc == 0 {
			t.Errorf("test after close: done %v, code %d", done, rc)
		}
	}
}

func TestFailKeepsWhatIsDone(t *testing.T) {
	tx, rx := connected(t, 1, 106)
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 2000, 0))
	more, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
	s := isend(t, tx, tx.buf(0, 2000, 0)) // too large to go ahead: done when handed over
	if _, rc := hostcalls.Finish(t, r); rc != 0 {
		t.Fatalf("code %d", rc)
	}
	if !tx.comm.Fail(6) || tx.comm.Fail(3) || !rx.comm.Fail(6) {
		t.Error("the first code must stay")
	}
	if done, _, rc := hostcalls.Test(s); !done || rc != 0 {
		t.Errorf("a send that was done: done %v, code %d", done, rc)
	}
	if done, _, rc := hostcalls.Test(more); done || rc != 6 {
		t.Errorf("a receive that was not: done %v, code %d", done, rc)
	}
	ended(t, "isend", func() (uintptr, int32) { return hostcalls.Isend(tx.handle, tx.buf(0, 8, 0)) })
	ended(t, "irecv", func() (uintptr, int32) { return hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0), rx.buf(8, 8, 1)) })
	if q, rc := hostcalls.Isend(tx.handle, tx.buf(0, 1<<31, 0)); q != 0 || rc == 0 || rc == 6 {
		t.Errorf("isend of 2 GiB returned %#x, %d", q, rc)
	}
	if q, rc := hostcalls.Isend(rx.handle, rx.buf(0, 8, 0)); q != 0 || rc == 0 || rc == 6 {
		t.Errorf("isend on a receive comm returned %#x, %d", q, rc)
	}
}

// ended requires of a comm that failed with 6 that what is posted is taken, that its test returns the code each time, and that
// there is an end to it.
func ended(t *testing.T, call string, post func() (uintptr, int32)) {
	t.Helper()
	taken := 0
	for ; ; taken++ {
		q, rc := post()
		if q == 0 && rc == 6 {
			break
		}
		for range 2 {
			if done, _, code := hostcalls.Test(q); q == 0 || rc != 0 || done || code != 6 {
				t.Fatalf("%s number %d returned %#x, %d; its test: done %v, code %d", call, taken, q, rc, done, code)
			}
		}
	}
	if taken < 100 || taken > 256 {
		t.Errorf("%d of %s are taken", taken, call)
	}
}

func TestHoldStopsTheOwner(t *testing.T) {
	tx, rx := connected(t, 1, 107)
	if err := tx.comm.Hold(); err != nil {
		t.Fatal(err)
	}
	if r, rc := hostcalls.Isend(tx.handle, tx.buf(0, 0, 0)); r != 0 || rc != 0 {
		t.Errorf("isend returned %#x, %d", r, rc)
	}
	tx.comm.Release()
	if err := rx.comm.Hold(); err != nil {
		t.Fatal(err)
	}
	if r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, 0, 0)); r != 0 || rc != 0 {
		t.Errorf("irecv returned %#x, %d", r, rc)
	}
	rx.comm.Release()
}

func TestMemoryIsChecked(t *testing.T) {
	tx, rx := connected(t, 1, 108)
	other, _ := connected(t, 1, 109)
	whole := uint64(len(rx.mem))
	for _, c := range []struct {
		what string
		buf  hostcalls.Buf
		ok   bool
	}{
		{"all of it", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr, Size: whole, Handle: rx.mr}, true},
		{"one byte more: the room ends there", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr, Size: whole + 1, Handle: rx.mr}, true},
		{"one byte before", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr - 1, Size: 8, Handle: rx.mr}, false},
		{"behind it", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr + uintptr(whole), Size: 1, Handle: rx.mr}, false},
		{"no handle", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr, Size: 8}, false},
		{"no handle, no bytes", hostcalls.Buf{}, true},
		{"of another device", hostcalls.Buf{Addr: other.buf(0, 0, 0).Addr, Size: 8, Handle: other.mr}, false},
		{"too large a size", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr, Size: 1 << 31, Handle: rx.mr}, false},
		{"a comm's handle", hostcalls.Buf{Addr: rx.buf(0, 0, 0).Addr, Size: 8, Handle: tx.handle}, false},
	} {
		r, rc := hostcalls.Irecv(rx.handle, c.buf)
		if ok := r != 0 && rc == 0; ok != c.ok {
			t.Errorf("%s: irecv returned %#x, %d", c.what, r, rc)
		}
	}
}

func TestAttachRefuses(t *testing.T) {
	c, err := fastpath.New(fastpath.Options{Kind: fastpath.Send})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(); c.Free() }()
	for _, a := range []struct {
		lane int
		fds  []int
	}{{1, []int{0}}, {0, nil}, {0, make([]int, 65)}, {-1, []int{0}}} {
		if err := tcp.AttachStreams(c, a.lane, a.fds, tcp.Stash); err == nil {
			t.Errorf("lane %d with %d streams was attached", a.lane, len(a.fds))
		}
	}
}
