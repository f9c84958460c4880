package tcp_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/tcp"
)

const header = 32 // bytes of a frame before its payload

// unread is how many bytes wait at a descriptor.
func unread(t *testing.T, fd int) int {
	t.Helper()
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// small sends one message that numbers itself, and has it done at once.
func small(t *testing.T, tx *side, n, size int) {
	t.Helper()
	if size >= 4 {
		binary.LittleEndian.PutUint32(tx.mem, uint32(n))
	}
	r := isend(t, tx, tx.buf(0, size, 0))
	if done, _, rc := hostcalls.Test(r); !done || rc != 0 {
		t.Fatalf("send %d: done %v, code %d", n, done, rc)
	}
	clear(tx.mem[:size]) // the host may use it again
}

// numbers sends one of 8 bytes, however long that takes.
func numbers(t *testing.T, tx *side, n int) {
	t.Helper()
	binary.LittleEndian.PutUint32(tx.mem, uint32(n))
	if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, 8, 0))); rc != 0 {
		t.Fatalf("send %d: code %d", n, rc)
	}
}

// numbered receives messages and requires them in their order.
func numbered(t *testing.T, rx *side, from, to int, size func(n int) int) {
	t.Helper()
	for n := from; n < to; n++ {
		r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, 1<<20, 0))
		if r == 0 || rc != 0 {
			t.Fatalf("irecv %d: %#x, code %d", n, r, rc)
		}
		sizes, rc := hostcalls.Finish(t, r)
		if rc != 0 || int(sizes[0][0]) != size(n) {
			t.Fatalf("message %d: %d bytes, code %d: %+v", n, sizes[0][0], rc, hostcalls.LastFault())
		}
		if got := binary.LittleEndian.Uint32(rx.mem); size(n) >= 4 && got != uint32(n) {
			t.Fatalf("message %d came in place of %d", got, n)
		}
	}
}

// begin sends message 0, which leaves, since other tests have looked for messages in vain.
func begin(t *testing.T, tx, rx *side) {
	t.Helper()
	if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, 0, 0))); rc != 0 {
		t.Fatalf("code %d", rc)
	}
	numbered(t, rx, 0, 1, func(int) int { return 0 })
}

// Small sends are done before they leave, and leave with whatever does not belong to them.
func TestCoalesced(t *testing.T) {
	for _, c := range []struct {
		what  string
		sizes []int // of those that stay
		last  int   // of one more, -1: none
		makes func(t *testing.T, tx *side)
		stays bool // the last one
	}{
		{what: "the eighth takes all along", sizes: []int{8, 8, 8, 8, 8, 8, 8}, last: 8},
		{what: "one for which there is no room", sizes: []int{8192, 8192, 8192}, last: 8192, stays: true},
		{what: "one that is large", sizes: []int{100, 4, 0}, last: 9000},
		{what: "calls that find nothing", sizes: []int{0, 0, 0, 0, 0}, last: -1, makes: vain(20)},
		{what: "a message to somebody who waits", sizes: []int{8, 1000}, last: 8, makes: vain(3)},
		{what: "the core", sizes: []int{1000}, last: -1, makes: func(t *testing.T, tx *side) {
			if !tcp.WriteCoalesced(tx.comm) {
				t.Error("it could not be written")
			}
		}},
	} {
		for _, streams := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d streams", c.what, streams), func(t *testing.T) {
				fds := socketpairs(t, streams)
				tx, rx := connectedBy(t, fds, 140, tcp.Stash)
				begin(t, tx, rx)
				tx.comm.Coalesce(true)
				bytes := 0
				for n, size := range c.sizes {
					small(t, tx, 1+n, size)
					bytes += header + size
				}
				at := fds[1][0]
				if n, is := unread(t, at), tx.comm.Snapshot(); n != 0 || int(is.Coalesced) != len(c.sizes) || is.Unsent != 1 {
					t.Fatalf("%d bytes have left, %+v", n, is)
				}
				if c.makes != nil {
					c.makes(t, tx)
				}
				sizes := c.sizes
				if c.last >= 0 {
					binary.LittleEndian.PutUint32(tx.mem, uint32(1+len(sizes)))
					if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, c.last, 0))); rc != 0 {
						t.Fatalf("code %d", rc)
					}
					sizes = append(slices.Clone(sizes), c.last)
				}
				if c.last >= 0 && !c.stays {
					bytes += header + c.last
				}
				if n, is := unread(t, at), tx.comm.Snapshot(); n != bytes || (is.Coalesced == 1) != c.stays {
					t.Errorf("%d of %d bytes have left, %+v", n, bytes, is)
				}
				tcp.WriteCoalesced(tx.comm)
				if is := tx.comm.Snapshot(); is.Coalesced != 0 || is.Unsent != 0 {
					t.Errorf("something is left: %+v", is)
				}
				numbered(t, rx, 1, 1+len(sizes), func(n int) int { return sizes[n-1] })
			})
		}
	}
}

// vain makes calls on another connection that find nothing to do.
func vain(n int) func(t *testing.T, tx *side) {
	return func(t *testing.T, _ *side) {
		_, wait := connected(t, 1, 141)
		r, _ := hostcalls.Irecv(wait.handle, wait.buf(0, 8, 0))
		for range n {
			hostcalls.Test(r)
		}
	}
}

// A host that sends one small message after the other has its Go side wanted, and one that does anything else has not.
func TestStreak(t *testing.T) {
	for _, c := range []struct {
		what  string
		size  int
		each  func(t *testing.T, tx *side) // besides the send
		wants int
	}{
		{"nothing else", 8, func(*testing.T, *side) {}, 3},
		{"large ones", 8193, func(*testing.T, *side) {}, 0},
		{"it looks for messages", 8, vain(3), 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			heard(t)
			tx, rx := connected(t, 1, 148)
			tx.comm.SetStreak(8)
			before := hostcalls.Wants()
			for n := range 30 { // the first one waits for company, and is not counted
				if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, c.size, 0))); rc != 0 {
					t.Fatalf("send %d: code %d", n, rc)
				}
				c.each(t, tx)
				if c.size > 8 {
					numbered(t, rx, 0, 1, func(int) int { return c.size })
				}
			}
			if got := hostcalls.Wants() - before; got != c.wants {
				t.Errorf("wanted %d times", got)
			}
		})
	}
}

// Whatever sizes follow one another, and whoever writes, nothing is lost or overtaken.
func TestCoalescedInOrder(t *testing.T) {
	tx, rx := connected(t, 1, 143)
	size := func(n int) int { return []int{8, 4, 1000, 9000, 4096, 8192, 100_000, 8, 16_384}[n*7%9] }
	tx.comm.Coalesce(true)
	for n := range 600 {
		if n%50 == 25 {
			tx.comm.Coalesce(n%100 == 75)
		}
		binary.LittleEndian.PutUint32(tx.mem, uint32(n))
		if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, size(n), 0))); rc != 0 {
			t.Fatalf("send %d: code %d", n, rc)
		}
		if n%3 == 2 {
			if !tcp.WriteCoalesced(tx.comm) {
				t.Fatal("no room")
			}
			numbered(t, rx, n-2, n+1, size)
		}
	}
}

// A receiver that does not read holds up a sender that coalesces: what is done and has not left is bounded, and leaves when
// the comm is closed, even if the kernel has no room at that moment.
func TestCoalescedUnread(t *testing.T) {
	heard(t)
	fds := socketpairs(t, 1)
	if err := unix.SetsockoptInt(fds[0][0], unix.SOL_SOCKET, unix.SO_SNDBUF, 8<<10); err != nil {
		t.Fatal(err)
	}
	tx, rx := opened(t, fds, 144, tcp.Stash)
	defer rx.end(t, fds[1])
	begin(t, tx, rx)
	tx.comm.Coalesce(true)
	sent, size := 1, func(int) int { return 1000 }
	for last := uintptr(0); ; sent++ {
		binary.LittleEndian.PutUint32(tx.mem, uint32(sent))
		last = isend(t, tx, tx.buf(0, size(0), 0))
		if done, _, _ := hostcalls.Test(last); !done {
			break
		}
		if sent > 100 {
			t.Fatal("the sender is never held up")
		}
	}
	is := tx.comm.Snapshot()
	if is.Coalesced == 0 || is.Coalesced > 8 || tcp.WriteCoalesced(tx.comm) {
		t.Fatalf("%+v", is)
	}
	if err := tx.comm.Close(); err != nil {
		t.Fatal(err)
	}
	streams, rest := tcp.DetachStreams(tx.comm)
	if len(rest) == 0 {
		t.Fatal("nothing is left to write")
	}
	reaper := tcp.NewReaper(time.Minute, report.Discard{})
	reaper.Add(streams, tcp.Rest{Bytes: rest}, tx.comm)
	numbered(t, rx, 1, sent, size)
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 1000, 0)) // behind what was done is the end, not half a message
	if _, rc := hostcalls.Finish(t, r); rc == 0 || hostcalls.LastFault().Kind != uint32(fastpath.FaultPeerClosed) {
		t.Errorf("code %d, %+v", rc, hostcalls.LastFault())
	}
}

// What does not leave until the deadline of a close is told of.
func TestCoalescedNeverRead(t *testing.T) {
	fds := socketpairs(t, 1)
	tx, rx := opened(t, fds, 149, tcp.Stash)
	defer rx.end(t, fds[1])
	begin(t, tx, rx)
	tx.comm.Coalesce(true)
	small(t, tx, 1, 1000)
	if err := tx.comm.Close(); err != nil {
		t.Fatal(err)
	}
	streams, rest := tcp.DetachStreams(tx.comm)
	for filler := make([]byte, 64<<10); ; {
		if _, err := unix.Write(streams[0], filler); err != nil {
			break
		}
	}
	var log report.Recorder
	tcp.NewReaper(50*time.Millisecond, &log).Add(streams, tcp.Rest{Bytes: rest, Device: "eth7", Peer: "a peer"}, tx.comm)
	for end := time.Now().Add(30 * time.Second); log.Count("WARN", "close on eth7 with a peer", "1032 bytes of small sends") == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nobody tells of them: %q", log.Lines())
		}
	}
}

// A peer that closes is noticed by the next send that reaches the kernel; what was done stays done.
func TestCoalescedPeerCloses(t *testing.T) {
	heard(t)
	fds := socketpairs(t, 1)
	tx, rx := connectedBy(t, fds, 145, tcp.Stash)
	begin(t, tx, rx)
	tx.comm.Coalesce(true)
	small(t, tx, 0, 8)
	if err := unix.Shutdown(fds[1][0], unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		r, rc := hostcalls.Isend(tx.handle, tx.buf(0, 8, 0))
		if rc == 0 {
			_, _, rc = hostcalls.Test(r)
		}
		if rc != 0 {
			if f := hostcalls.LastFault(); n == 0 || f.Kind != uint32(fastpath.FaultPeerClosed) {
				t.Errorf("send %d: %+v", n, f)
			}
			return
		}
	}
	t.Error("nobody notices")
}

// Who is coalesced: a host that sends fast, for as long as it sends faster for it.
func TestCoalescer(t *testing.T) {
	type turn struct {
		sends int  // since the last one, 250 us ago
		on    bool // after it
		ends  bool // and the comm is no longer looked at
	}
	for _, c := range []struct {
		what   string
		turns  []turn
		streak uint32 // afterwards
	}{
		{"too slow", []turn{{15, false, true}}, 128},
		{"it gains, and then stops", []turn{{24, true, false}, {30, true, false}, {80, true, false}, {36, true, false}, {0, false, true}}, 64},
		{"it does not gain", []turn{{24, true, false}, {24, true, false}, {35, false, true}}, 128},
		{"it stops at once", []turn{{24, true, false}, {0, false, true}}, 128},
		{"it gains no longer", []turn{{24, true, false}, {1, true, false}, {36, true, false}, {35, false, true}}, 64},
	} {
		t.Run(c.what, func(t *testing.T) {
			tx, rx := connected(t, 1, 146)
			lingering, sent := 0, 0
			o := tcp.NewTurnedCoalescer(func(n int) { lingering += n })
			o.Begin(tx.comm)
			for i, at := range c.turns {
				for range at.sends {
					numbers(t, tx, sent)
					sent++
				}
				moved, more := o.Turn()
				if moved != (at.sends > 0) || more == at.ends {
					t.Fatalf("turn %d: sent %v, more %v", i, moved, more)
				}
				if (lingering == 1) != at.on { // exit waits for what may be left
					t.Fatalf("turn %d: on %v, lingers for %d", i, !at.on, lingering)
				}
			}
			if is := tx.comm.Snapshot(); is.Coalesced != 0 {
				t.Errorf("something is left: %+v", is)
			}
			numbered(t, rx, 0, sent, func(int) int { return 8 })
			if got := tx.comm.Streak(); got != c.streak {
				t.Errorf("it is looked at again after %d sends", got)
			}
		})
	}
}

// A turn without a send writes what the last ones left behind, and keeps a comm whose kernel has no room.
func TestCoalescerWrites(t *testing.T) {
	fds := socketpairs(t, 1)
	tx, rx := connectedBy(t, fds, 147, tcp.Stash)
	lingering, n := 0, 0
	o := tcp.NewTurnedCoalescer(func(n int) { lingering += n })
	o.Begin(tx.comm)
	for _, sends := range []int{24, 48} {
		for range sends {
			numbers(t, tx, n)
			n++
		}
		o.Turn()
	}
	numbers(t, tx, n)
	n++
	if tx.comm.Snapshot().Coalesced == 0 {
		t.Fatal("nothing is coalesced")
	}
	if err := tx.comm.Hold(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, more := o.Turn(); !more || lingering != 1 {
			t.Errorf("forgotten with sends that have not left: more %v, exit waits for %d", more, lingering)
		}
	}
	tx.comm.Release()
	if _, more := o.Turn(); more || lingering != 0 || tx.comm.Snapshot().Coalesced != 0 {
		t.Errorf("more %v, exit waits for %d, %+v", more, lingering, tx.comm.Snapshot())
	}
	numbered(t, rx, 0, n, func(int) int { return 8 })
}
