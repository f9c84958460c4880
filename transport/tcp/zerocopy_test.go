package tcp_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// loopbacks are n connections over loopback of which the first ends take 8 MiB that the others, which have room for
// 64 KiB, have not read.
func loopbacks(t *testing.T, n int) (fds [2][]int) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(err)
	defer unix.Close(l)
	check(unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10))
	check(unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	check(unix.Listen(l, n))
	at, err := unix.Getsockname(l)
	check(err)
	for range n {
		tx, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		check(err)
		fds[0] = append(fds[0], tx)
		if err := unix.SetsockoptInt(tx, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20); err != nil {
			unix.Close(tx)
			t.Skipf("needs CAP_NET_ADMIN for a socket that takes 8 MiB: %v", err)
		}
		check(unix.Connect(tx, at))
		rx, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		check(err)
		fds[1] = append(fds[1], rx)
		for _, fd := range []int{tx, rx} {
			check(unix.SetNonblock(fd, true))
		}
	}
	return fds
}

// A send whose payload the kernel reads where it lies is not done before the kernel has let go of it: what the host then
// writes there is no part of the message.
func TestZeroCopy(t *testing.T) {
	for _, zero := range []bool{false, true} {
		for _, streams := range []int{1, 3} {
			for _, size := range []int{40 << 10, 1<<20 + 7, 4 << 20} {
				t.Run(fmt.Sprintf("%t/%d streams/%d bytes", zero, streams, size), func(t *testing.T) {
					fds := loopbacks(t, streams)
					for _, fd := range fds[0] {
						if zero {
							if err := tcp.AllowZeroCopy(fd); err != nil {
								t.Fatal(err)
							}
						}
					}
					tx, rx := connectedBy(t, fds, 120, tcp.Stash)
					for round := range 3 {
						want := make([]byte, size)
						rand.New(rand.NewSource(int64(size + round))).Read(want)
						copy(tx.mem, want)
						r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, size, 3))
						if rc != 0 || r == 0 {
							t.Fatalf("irecv returned %#x, %d", r, rc)
						}
						s := isend(t, tx, tx.buf(0, size, 3))
						test := func(r *uintptr) {
							done, _, rc := hostcalls.Test(*r)
							if rc != 0 {
								t.Fatalf("round %d: code %d", round, rc)
							}
							if done {
								*r = 0
							}
						}
						for range 1000 { // the peer reads nothing
							if s != 0 {
								test(&s)
							}
						}
						if size > 1<<20 && round == 0 && (s != 0) != zero {
							t.Fatalf("the peer has read nothing, and the send is done: %t", s == 0)
						}
						for until := time.Now().Add(20 * time.Second); r != 0; {
							if s != 0 {
								test(&s)
							}
							if s == 0 {
								clear(tx.mem[:size])
							}
							test(&r)
							if time.Now().After(until) {
								t.Fatalf("round %d: never done: %+v, %+v", round, tx.comm.Snapshot(), rx.comm.Snapshot())
							}
						}
						for until := time.Now().Add(20 * time.Second); s != 0; {
							if test(&s); time.Now().After(until) {
								t.Fatalf("round %d: the send is never done: %+v", round, tx.comm.Snapshot())
							}
						}
						if !bytes.Equal(rx.mem[:size], want) {
							t.Fatalf("round %d: bytes differ", round)
						}
					}
					ahead := streams == 1 && size <= 128<<10 // which is copied
					if is := tx.comm.Snapshot(); is.Copies != (zero && !ahead) || is.Uncopied != 0 {
						t.Errorf("over loopback the kernel copies: %+v", is)
					}
				})
			}
		}
	}
}

// What the host gives up before the kernel has let go of it never reaches the peer: its memory may be another's by then.
func TestZeroCopyGivenUp(t *testing.T) {
	for _, zero := range []bool{false, true} {
		const size = 2 << 20
		fds := loopbacks(t, 1)
		if zero {
			if err := tcp.AllowZeroCopy(fds[0][0]); err != nil {
				t.Fatal(err)
			}
		}
		tx, rx := connectedBy(t, fds, 121, tcp.Stash)
		fill := func(with byte) {
			for i := range size {
				tx.mem[i] = with
			}
		}
		fill(1) // pages of its own
		if r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, size, 3)); rc != 0 || r == 0 {
			t.Fatalf("irecv returned %#x, %d", r, rc)
		}
		s := isend(t, tx, tx.buf(0, size, 3))
		for range 1000 {
			if done, _, rc := hostcalls.Test(s); done || rc != 0 {
				break
			}
		}
		if err := tx.comm.Close(); err != nil {
			t.Fatal(err)
		}
		tcp.Cut(tx.comm)
		fill(0xee)
		got, b := 0, make([]byte, 1<<20)
		var err error
		for until := time.Now().Add(20 * time.Second); got < size+32; {
			var n int
			if n, err = unix.Read(fds[1][0], b); err == unix.EAGAIN {
				if time.Now().After(until) {
					break
				}
				continue
			}
			if err != nil || n == 0 {
				break
			}
			if bytes.IndexByte(b[:n], 0xee) >= 0 {
				t.Fatalf("zero-copy %t: the peer reads what was not sent, after %d bytes", zero, got)
			}
			got += n
		}
		if (err == unix.ECONNRESET) != zero {
			t.Errorf("zero-copy %t: the peer has read %d bytes, then %v", zero, got, err)
		}
	}
}
