package tcp_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// cable is a TCP connection whose bytes pass at a rate.
type cable struct {
	from, to int // descriptors of its ends
	rate     atomic.Int64
	passed   atomic.Int64
}

// newCable relays between two connections, and buffers little.
func newCable(t *testing.T, rate int64) *cable {
	t.Helper()
	c := &cable{}
	c.rate.Store(rate)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10) })
	end := func() (ours int, relays *net.TCPConn) {
		far, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		f, err := far.(*net.TCPConn).File()
		far.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if ours, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(ours, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close() })
		return ours, near.(*net.TCPConn)
	}
	var a, b *net.TCPConn
	c.from, a = end()
	c.to, b = end()
	go c.relay(a, b)
	go func() { // clear-to-sends
		buf := make([]byte, 4096)
		for {
			n, err := b.Read(buf)
			if err == nil {
				_, err = a.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

func (c *cable) relay(from, to *net.TCPConn) {
	buf := make([]byte, 16<<10)
	for free := time.Now(); ; {
		n, err := from.Read(buf)
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(int64(n) * int64(time.Second) / c.rate.Load()))
		time.Sleep(time.Until(free))
		c.passed.Add(int64(n))
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// What streams carry follows their speed, of messages that are cut and of such
// that are not, and follows it when it changes: no stream takes more than it
// can soon send.
func TestStreamsFollowSpeed(t *testing.T) {
	for _, size := range []int{64 << 10, 256 << 10} {
		t.Run(fmt.Sprint(size, " bytes"), func(t *testing.T) {
			t.Parallel()
			cables := []*cable{newCable(t, 4e6), newCable(t, 1e6)}
			var fds [2][]int
			for _, c := range cables {
				fds[0], fds[1] = append(fds[0], c.from), append(fds[1], c.to)
				if err := tcp.LimitUnsent(c.from); err != nil {
					t.Fatal(err)
				}
			}
			tx, rx := connectedBy(t, fds, uint32(size), tcp.Stash)
			rand.New(rand.NewSource(int64(size))).Read(tx.mem)
			part := func() float64 {
				before := []int64{cables[0].passed.Load(), cables[1].passed.Load()}
				pass(t, tx, rx, size, 3<<20/size)
				a, b := cables[0].passed.Load()-before[0], cables[1].passed.Load()-before[1]
				return float64(a) / float64(a+b)
			}
			part() // to begin with both are empty
			if got := part(); got < 0.65 || got > 0.9 {
				t.Errorf("a stream of 4 MB/s beside one of 1 has %.2f of the bytes", got)
			}
			cables[0].rate.Store(5e5)
			part() // what it has taken
			if got := part(); got < 0.2 || got > 0.5 {
				t.Errorf("a stream of 0.5 MB/s beside one of 1 has %.2f of the bytes", got)
			}
		})
	}
}

// pass moves so many messages, of which 16 are under way, and checks them.
func pass(t *testing.T, tx, rx *side, size, count int) {
	t.Helper()
	const window = 16
	posts := [2]func(at int) (uintptr, int32){
		func(at int) (uintptr, int32) { return hostcalls.Isend(tx.handle, tx.buf(at, size, 0)) },
		func(at int) (uintptr, int32) { return hostcalls.Irecv(rx.handle, rx.buf(at, size, 0)) },
	}
	var reqs [2][window]uintptr
	var posted, done [2]int
	for deadline := time.Now().Add(time.Minute); done[0] < count || done[1] < count; time.Sleep(20 * time.Microsecond) {
		for i, post := range posts {
			slot := posted[i] % window
			if posted[i] < count && posted[i]-done[i] < window && (i == 1 || posted[0] < done[1]+window) {
				r, rc := post(slot * size)
				if rc != 0 {
					t.Fatalf("side %d: code %d", i, rc)
				}
				if reqs[i][slot] = r; r != 0 {
					posted[i]++
				}
			}
			if done[i] == posted[i] {
				continue
			}
			slot = done[i] % window
			over, _, rc := hostcalls.Test(reqs[i][slot])
			if rc != 0 || time.Now().After(deadline) {
				t.Fatalf("side %d: code %d, %d of %d messages are done", i, rc, done[i], count)
			}
			if !over {
				continue
			}
			if at := slot * size; i == 1 {
				if !bytes.Equal(tx.mem[at:at+size], rx.mem[at:at+size]) {
					t.Fatalf("message %d differs", done[1])
				}
				clear(rx.mem[at : at+size])
			}
			done[i]++
		}
	}
}
