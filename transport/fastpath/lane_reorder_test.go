package fastpath_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"weft/internal/hostcalls"
)

// No completion is seen before its data, in whatever order a queue pair's writes
// are placed: with and without adaptive routing, alone and in groups, on one lane
// and on shares of several.
func TestLaneReordered(t *testing.T) {
	for _, c := range []laneConfig{
		{lanes: 1, width: 1, stripeMin: 1 << 16, depth: 64, inline: 64},
		{lanes: 1, width: 1, stripeMin: 1 << 16, depth: 64, inline: 64, above: 1},
		{lanes: 4, width: 2, stripeMin: 1 << 16, depth: 64, inline: 64, above: 8192},
		{lanes: 4, width: 4, depth: 128, above: 8192, most: 10_000},
		{lanes: 8, width: 8, stripeMin: 4096, depth: 64, inline: 220},
	} {
		t.Run(c.name(), func(t *testing.T) {
			tx, rx := laneConnected(t, laneProvider(t), c)
			rand.New(rand.NewSource(1)).Read(tx.mem)
			for _, d := range []string{"simA", "simB"} {
				command(t, "reorder %s on", d)
				defer command(t, "reorder %s off", d)
			}
			for round := range 40 {
				if err := tx.together(t, rx, 1+round%8, 1000+round*4001); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		})
	}
}

// together moves a group of n messages and looks at the data as soon as the
// receive says that it is complete, before the sends' end is known.
func (tx *laneSide) together(t *testing.T, rx *laneSide, n, size int) error {
	t.Helper()
	room := len(rx.mem) / 8
	var bufs []hostcalls.Buf
	for i := range n {
		bufs = append(bufs, rx.buf(i*room, size, int32(i)))
		clear(rx.mem[i*room : i*room+size])
	}
	r, rc := hostcalls.Irecv(rx.handle, bufs...)
	if rc != 0 || r == 0 {
		return fmt.Errorf("irecv returned %#x, %d", r, rc)
	}
	var sends []uintptr
	for i := range n {
		s, rc := hostcalls.Send(t, tx.handle, tx.buf(i*room, size, int32(i)))
		if rc != 0 {
			return fmt.Errorf("isend returned %d, %+v", rc, hostcalls.LastFault())
		}
		sends = append(sends, s)
	}
	if _, rc := hostcalls.Finish(t, r); rc != 0 {
		return fmt.Errorf("the receive ends with %d, %+v", rc, hostcalls.LastFault())
	}
	for i := range n {
		if at := i * room; !bytes.Equal(tx.mem[at:at+size], rx.mem[at:at+size]) {
			return fmt.Errorf("message %d of %d is complete before its %d bytes are there", i, n, size)
		}
	}
	if _, rc := hostcalls.Finish(t, sends...); rc != 0 {
		return fmt.Errorf("a send ends with %d, %+v", rc, hostcalls.LastFault())
	}
	return nil
}
