package tcp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// piece is what one DATA frame brings of a message.
type piece struct{ from, to int }

// forged makes a comm, tx or rx, whose peer is the test: what that sends by a stream it writes to the descriptor of its number.
func forged(t *testing.T, streams int, device uint32, sender bool) (tx, rx *side, fds []int) {
	t.Helper()
	var both [2][]int
	for range streams {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		both[0], both[1] = append(both[0], p[0]), append(both[1], p[1])
	}
	tx, rx = connectedBy(t, both, device, tcp.Stash)
	if sender {
		return tx, rx, both[1]
	}
	return tx, rx, both[0]
}

func write(t *testing.T, fd int, b []byte) {
	t.Helper()
	if n, err := unix.Write(fd, b); n != len(b) {
		t.Fatalf("write: %d of %d, %v", n, len(b), err)
	}
}

// A receive is done when every byte of it was written, however the message was cut and in whatever order it came; frames of as
// many bytes that leave out some are a fault.
func TestDoneMeansEveryByte(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	type message struct {
		what   string
		pieces []piece
	}
	cases := []message{
		{"whole", []piece{{0, 1000}}},
		{"two in order", []piece{{0, 10}, {10, 1000}}},
		{"the last first", []piece{{990, 1000}, {0, 990}}},
		{"the same half twice", []piece{{0, 500}, {0, 500}}},
		{"an overlap of one byte", []piece{{0, 501}, {500, 999}}},
		{"nothing of the beginning", []piece{{1, 500}, {500, 1000}, {7, 8}}},
		{"two chains", []piece{{0, 400}, {600, 1000}, {100, 300}}},
		{"one inside another", []piece{{0, 900}, {300, 400}}},
	}
	for n := range 60 { // cut at random; of every other one two pieces change their places, as far as they go
		m := message{what: fmt.Sprint("random ", n)}
		for at := 0; at < 1000; {
			to := min(1000, at+1+r.IntN(400))
			m.pieces = append(m.pieces, piece{at, to})
			at = to
		}
		r.Shuffle(len(m.pieces), func(i, j int) { m.pieces[i], m.pieces[j] = m.pieces[j], m.pieces[i] })
		if p := &m.pieces[0]; n%2 == 1 {
			by := 1 + r.IntN(100)
			if p.from < by {
				by = -by
			}
			if p.from, p.to = p.from-by, p.to-by; p.to > 1000 {
				p.from, p.to = 0, p.to-p.from
			}
		}
		cases = append(cases, m)
	}
	done, refused := 0, 0
	for _, c := range cases {
		var times [1000]int
		for _, p := range c.pieces {
			for i := p.from; i < p.to; i++ {
				times[i]++
			}
		}
		whole := true
		for _, n := range times {
			whole = whole && n == 1
		}
		for _, group := range []int{1, 3} { // the message is one of a group
			_, rx, fds := forged(t, 3, 130, false)
			var bufs []hostcalls.Buf
			for i := range group {
				bufs = append(bufs, rx.buf(2000*i, 1000, 0))
			}
			q, rc := hostcalls.Irecv(rx.handle, bufs...)
			hostcalls.Test(q) // its CTS is out
			if q == 0 || rc != 0 {
				t.Fatalf("irecv returned %#x, %d", q, rc)
			}
			for i := range group - 1 {
				write(t, fds[i], append(frame(3, byte(i), 0, 1000, 1000, 0, 1), make([]byte, 1000)...))
			}
			for i, p := range c.pieces {
				payload := make([]byte, p.to-p.from)
				for k := range payload {
					payload[k] = byte(p.from + k)
				}
				write(t, fds[i%3], append(frame(3, byte(group-1), 0, uint32(len(payload)), 1000, uint64(p.from), 1), payload...))
			}
			if _, rc := hostcalls.Finish(t, q); (rc == 0) != whole {
				t.Fatalf("%s %v, last of a group of %d: code %d", c.what, c.pieces, group, rc)
			}
			if !whole {
				refused++
				continue
			}
			done++
			for i, b := range rx.mem[2000*(group-1):][:1000] {
				if b != byte(i) {
					t.Fatalf("%s %v: byte %d is wrong", c.what, c.pieces, i)
				}
			}
		}
	}
	if done < 20 || refused < 20 {
		t.Errorf("%d done, %d refused", done, refused)
	}
}
