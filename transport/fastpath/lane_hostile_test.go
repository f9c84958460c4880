package fastpath_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"weft/internal/hostcalls"
)

// forge writes a CTS line into the ring of the sending side, which then sends what no receiver asked for.
func (s *laneSide) forge(to *laneSide, line int, n, i uint32, size, seq uint64) {
	at := s.ring()[line*64:][:64]
	binary.LittleEndian.PutUint64(at[0:], uint64(to.buf(0, 0, 0).Addr))
	binary.LittleEndian.PutUint64(at[8:], size)
	for d := range 2 {
		binary.LittleEndian.PutUint32(at[16+4*d:], to.regions[2*d+1].RKey)
	}
	binary.LittleEndian.PutUint32(at[52:], n<<16|i)
	binary.LittleEndian.PutUint64(at[56:], seq)
}

// What a sender says in records and immediates is checked.
func TestLaneHostileSender(t *testing.T) {
	p := laneProvider(t)
	for name, bad := range map[string]struct {
		config   int
		receives int
		forge    func(tx, rx *laneSide)
		sends    []int
		later    bool // the receive ends well, what comes after it does not
	}{
		"no receive":           {0, 1, func(tx, rx *laneSide) { tx.forge(rx, 1, 1, 0, 100, 2) }, []int{10, 10}, true},
		"too large":            {0, 1, func(tx, rx *laneSide) { tx.forge(rx, 0, 1, 0, 1000, 1) }, []int{1000}, false},
		"too large, striped":   {5, 1, func(tx, rx *laneSide) { tx.forge(rx, 0, 1, 0, 90000, 1) }, []int{90000}, false},
		"more than the group":  {0, 1, func(tx, rx *laneSide) { tx.forge(rx, 0, 2, 0, 10, 1); tx.forge(rx, 1, 2, 1, 10, 1) }, []int{1, 2}, false},
		"fewer than the group": {0, 2, func(tx, rx *laneSide) { tx.forge(rx, 0, 1, 0, 10, 1) }, []int{1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tx, rx := laneConnected(t, p, laneConfigs[bad.config])
			var bufs []hostcalls.Buf
			for i := range bad.receives {
				bufs = append(bufs, rx.buf(i*100, 100, 0))
			}
			receive, _ := hostcalls.Irecv(rx.handle, bufs...)
			_, _, _ = hostcalls.Test(receive) // its CTS is out
			for deadline := time.Now().Add(20 * time.Second); binary.LittleEndian.Uint64(tx.ring()[56:]) == 0; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatal("the CTS does not arrive")
				}
			}
			bad.forge(tx, rx)
			var sends []uintptr
			for _, size := range bad.sends {
				s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, size, 0))
				if rc != 0 {
					t.Fatalf("isend returned %d, %+v", rc, hostcalls.LastFault())
				}
				sends = append(sends, s)
			}
			if _, rc := hostcalls.Finish(t, sends...); rc != 0 {
				t.Fatalf("sends end with %d, %+v", rc, hostcalls.LastFault())
			}
			_, rc := hostcalls.Finish(t, receive)
			if rc == 0 && bad.later {
				receive, _ = hostcalls.Irecv(rx.handle, bufs...)
				_, rc = hostcalls.Finish(t, receive)
			}
			if f := hostcalls.LastFault(); rc != 103 || f.Kind != 3 {
				t.Errorf("receive ends with %d, %+v", rc, f)
			}
		})
	}
}
