package rendezvous

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
)

// A full room closes the oldest connection of the address that has the most, and
// none that is young.
func TestRoom(t *testing.T) {
	enter := func(r *room) *Conn {
		c, far := connected(t)
		t.Cleanup(func() { far.Close() })
		c.waits(r.enter(c))
		return c
	}
	for _, tc := range []struct {
		name string
		room *room
	}{
		{"of one address", newRoom(100, 3, 0)},
		{"of all", newRoom(3, 100, 0)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []*Conn
			for range 10 {
				all = append(all, enter(tc.room))
			}
			for i, c := range all {
				if c.closed.Load() != (i < 7) {
					t.Errorf("connection %d closed: %v", i, c.closed.Load())
				}
			}
			all[8].Close()
			all[9].Leaves()
			if n := tc.room.held(); n != 1 {
				t.Errorf("%d are held", n)
			}
			all[9].Close()
			all[7].Close()
			if len(tc.room.from) != 0 {
				t.Errorf("%d addresses are remembered", len(tc.room.from))
			}
		})
	}
	t.Run("the young wait", func(t *testing.T) {
		r := newRoom(1, 1, time.Hour)
		first := enter(r)
		second, _ := connected(t)
		got := make(chan *place)
		go func() { got <- r.enter(second) }()
		second.Close()
		if p := <-got; p != nil || first.closed.Load() {
			t.Error("it did not wait")
		}
		third, _ := connected(t)
		go func() { got <- r.enter(third) }()
		first.Close()
		if p := <-got; p == nil {
			t.Error("no place")
		}
		fourth, _ := connected(t)
		if r.push(fourth); r.held() != 1 || !third.closed.Load() {
			t.Error("a host's thread must not wait")
		}
	})
}

// Whatever is said of a connection, in whatever order, it has one place at most, and none once it is closed.
func TestPlaceOfAConnection(t *testing.T) {
	n := NewNetwork(knob.Defaults(), report.Discard{}, nil)
	for range 200 {
		s := NewSockets(n, NewNoise(report.Discard{}))
		held := func() int { return s.strangers.held() + s.proven.held() }
		c, _ := connected(t)
		c.waits(s.strangers.enter(c))
		var closing sync.WaitGroup
		for range rand.IntN(8) {
			switch rand.IntN(8) {
			case 0:
				closing.Go(func() { c.Close() })
			case 1:
				c.Close()
			case 2:
				c.Leaves()
			default:
				s.Unused(c)
			}
			if n := held(); n > 1 {
				t.Fatalf("it has %d places", n)
			}
		}
		c.Close()
		closing.Wait()
		if n := held(); n != 0 {
			t.Fatalf("%d places of a connection that is closed", n)
		}
	}
}

// held is how many connections are in the room.
func (r *room) held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// connected is one end of a connection, and the other.
func connected(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConn(out.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); in.Close() })
	return c, in
}
