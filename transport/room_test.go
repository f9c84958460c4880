package transport

import (
	"testing"
	"time"
	"weft/transport/wire"
)

// A full room closes the oldest connection of the address that has the most, and
// none that is young.
func TestRoom(t *testing.T) {
	enter := func(r *room) *conn {
		c, far := connPair(t)
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
			var all []*conn
			for range 10 {
				all = append(all, enter(tc.room))
			}
			for i, c := range all {
				if c.closed.Load() != (i < 7) {
					t.Errorf("connection %d closed: %v", i, c.closed.Load())
				}
			}
			all[8].Close()
			all[9].leaves()
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
		second, _ := connPair(t)
		got := make(chan *place)
		go func() { got <- r.enter(second) }()
		second.Close()
		if p := <-got; p != nil || first.closed.Load() {
			t.Error("it did not wait")
		}
		third, _ := connPair(t)
		go func() { got <- r.enter(third) }()
		first.Close()
		if p := <-got; p == nil {
			t.Error("no place")
		}
		fourth, _ := connPair(t)
		if r.push(fourth); r.held() != 1 || !third.closed.Load() {
			t.Error("a host's thread must not wait")
		}
	})
}

func TestNoncesAreBounded(t *testing.T) {
	b := start(t, nil)
	l, _ := b.listen(t, 128)
	first := wire.NewNonce()
	if !l.fresh(first) || l.fresh(first) {
		t.Error("a nonce is not remembered")
	}
	last := first
	for range 3 * noncesKept {
		last = wire.NewNonce()
		l.fresh(last)
	}
	if l.fresh(last) || len(l.nonces[0])+len(l.nonces[1]) > 2*noncesKept {
		t.Errorf("%d and %d are remembered", len(l.nonces[0]), len(l.nonces[1]))
	}
}
