package fastpath_test

import (
	"bytes"
	"math/rand"
	"sync"
	"testing"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
)

// pass moves one message of size from tx to rx and compares it.
func (tx *laneSide) pass(t *testing.T, rx *laneSide, size int) {
	t.Helper()
	r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, size, 0))
	if rc != 0 || r == 0 {
		t.Fatalf("irecv returned %#x, %d", r, rc)
	}
	s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, size, 0))
	if rc == 0 {
		_, rc = hostcalls.Finish(t, r, s)
	}
	if rc != 0 || !bytes.Equal(tx.mem[:size], rx.mem[:size]) {
		t.Fatalf("%d bytes: code %d, %+v, equal: %v", size, rc, hostcalls.LastFault(), bytes.Equal(tx.mem[:size], rx.mem[:size]))
	}
	clear(rx.mem[:size])
}

// bytesOf is what every lane has carried of shared messages.
func bytesOf(s *laneSide) (all []uint64) {
	for _, l := range s.comm.LaneRates(nil) {
		all = append(all, l.Bytes)
	}
	return all
}

// Messages are cut by the lanes' weights, at multiples of 128 bytes, and what
// the lanes carried is told.
func TestLaneWeights(t *testing.T) {
	c := laneConfig{lanes: 4, width: 4, stripeMin: 4096, depth: 16}
	tx, rx := laneConnected(t, laneProvider(t), c)
	rand.New(rand.NewSource(1)).Read(tx.mem)
	for _, weights := range [][]uint32{{1, 1, 1, 1}, {8, 4, 2, 2}, {1, fastpath.MaxWeight, 1, 1}, {3, 5, 7, 11}} {
		if err := tx.comm.SetWeights(weights); err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		for _, w := range weights {
			sum += uint64(w)
		}
		for _, size := range []int{4097, 100_000, 1 << 20, 3<<20 + 77} {
			before := bytesOf(tx)
			tx.pass(t, rx, size)
			odd, total := 0, uint64(0)
			for i, now := range bytesOf(tx) {
				got := now - before[i]
				total += got
				if got%128 != 0 {
					odd++ // the last share
				}
				if want := uint64(size) * uint64(weights[i]) / sum; got+256+uint64(size>>14) < want || got > want+256+uint64(size>>14)+3*128 {
					t.Errorf("weights %v, %d bytes: lane %d has %d, want about %d", weights, size, i, got, want)
				}
			}
			if total != uint64(size) || odd > 1 {
				t.Errorf("weights %v, %d bytes: %d are told, %d lanes are not at a multiple of 128", weights, size, total, odd)
			}
		}
	}
	for _, l := range tx.comm.LaneRates(nil) {
		if l.Busy <= 0 {
			t.Errorf("%+v", l)
		}
	}
	for _, bad := range [][]uint32{{1, 1, 1}, {1, 1, 1, 0}, {1, 1, 1, fastpath.MaxWeight + 1}} {
		if tx.comm.SetWeights(bad) == nil {
			t.Errorf("weights %v are taken", bad)
		}
	}
}

// Messages that one lane carries take the lanes in turn, each as often as its
// weight says, whether they are one request or several; one of each lane and
// round tells of its speed, and only where that is asked for.
func TestLaneTurns(t *testing.T) {
	tx, rx := laneConnected(t, laneProvider(t), laneConfig{lanes: 4, width: 4, stripeMin: 4096, depth: 16, above: 2000})
	rand.New(rand.NewSource(1)).Read(tx.mem)
	for _, c := range []struct {
		weights []uint32
		want    []uint32 // of a round
	}{
		{nil, []uint32{24, 24, 24, 24}}, // as it begins
		{[]uint32{1, 1, 1, 1}, []uint32{24, 24, 24, 24}},
		{[]uint32{8, 4, 2, 2}, []uint32{48, 24, 12, 12}},
		{[]uint32{fastpath.MaxWeight, 1, 1, 1}, []uint32{96, 1, 1, 1}},
		{[]uint32{1000, 1, 999, 40_000}, []uint32{2, 1, 2, 91}},
	} {
		if c.weights != nil {
			if err := tx.comm.SetWeights(c.weights); err != nil {
				t.Fatal(err)
			}
		}
		round := 0
		for _, n := range c.want {
			round += int(n)
		}
		before, carried := tx.comm.LaneStates(nil), bytesOf(tx)
		for i := range 3 * round {
			size := 1000
			if i >= round {
				size = 3000 // two requests: its end is one of its own
			}
			tx.pass(t, rx, size)
		}
		for i, now := range tx.comm.LaneStates(nil) {
			if got := now.Posted - before[i].Posted; got != 5*c.want[i] {
				t.Errorf("weights %v: lane %d has taken %d requests, want %d", c.weights, i, got, 5*c.want[i])
			}
		}
		told := uint64(0)
		if c.weights != nil {
			told = 1000 + 2*3000
		}
		for i, now := range bytesOf(tx) {
			if got := now - carried[i]; got != told {
				t.Errorf("weights %v: lane %d tells of %d bytes, want %d", c.weights, i, got, told)
			}
		}
	}
}

// The time of a message is that of all that its lane has under way with it:
// where many are posted before the first is seen to be complete, they all count.
func TestLaneTimesWhatIsUnderWay(t *testing.T) {
	const size, count = 1000, 200
	tx, rx := laneConnected(t, laneProvider(t), laneConfig{lanes: 2, width: 2, stripeMin: 4096, depth: 256})
	if err := tx.comm.SetWeights([]uint32{3, 1}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"simA", "simB"} {
		command(t, "delay %s 50000", d)
		defer command(t, "delay %s 0", d)
	}
	var all []uintptr
	for range count {
		r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, size, 0))
		if rc != 0 || r == 0 {
			t.Fatal(r, rc)
		}
		all = append(all, r)
	}
	before := tx.comm.LaneStates(nil)
	for range count {
		s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, size, 0))
		if rc != 0 {
			t.Fatal(rc, hostcalls.LastFault())
		}
		all = append(all, s)
	}
	if _, rc := hostcalls.Finish(t, all...); rc != 0 {
		t.Fatal(rc, hostcalls.LastFault())
	}
	for i, now := range tx.comm.LaneStates(nil) {
		carried := uint64(now.Posted-before[i].Posted) * size
		if told := bytesOf(tx)[i]; told > carried || told < carried/2 {
			t.Errorf("lane %d has carried %d bytes and tells of %d", i, carried, told)
		}
	}
}

// Weights that change all the time lose nothing and double nothing.
func TestLaneWeightsChange(t *testing.T) {
	tx, rx := laneConnected(t, laneProvider(t), laneConfig{lanes: 8, width: 8, stripeMin: 1000, depth: 3, most: 10_000})
	rand.New(rand.NewSource(1)).Read(tx.mem)
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		random := rand.New(rand.NewSource(2))
		weights := make([]uint32, 8)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for i := range weights {
				weights[i] = 1 + uint32(random.Intn(1<<random.Intn(16)))
			}
			if err := tx.comm.SetWeights(weights); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 1500 {
		tx.pass(t, rx, 1+i*97)
	}
	close(stop)
	ended.Wait()
}

// A full send queue holds back its own share only.
func TestLaneFullQueue(t *testing.T) {
	p := laneProvider(t)
	tx, rx := laneEnds(t, p, laneConfig{lanes: 2, width: 2, depth: 64, most: 1000})
	tx.plan.Lanes[0].SendDepth = 1
	laneJoin(t, tx, rx)
	r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 40_000, 0))
	_, _, _ = hostcalls.Test(r) // its CTS is out
	s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, 40_000, 0))
	if rc != 0 {
		t.Fatal(rc, hostcalls.LastFault())
	}
	if l := tx.comm.LaneStates(nil); l[0].Posted != 1 || l[1].Posted < 20 {
		t.Errorf("%+v", l)
	}
	if _, rc := hostcalls.Finish(t, r, s); rc != 0 {
		t.Error(rc, hostcalls.LastFault())
	}
}

// With adaptive routing what is above the threshold ends in a request of its own.
func TestLaneAdaptive(t *testing.T) {
	c := laneConfig{lanes: 4, width: 2, stripeMin: 1 << 16, depth: 64, inline: 64, above: 8192, size: 4 << 20}
	tx, rx := laneConnected(t, laneProvider(t), c)
	posted := func() (n uint32) {
		for _, l := range tx.comm.LaneStates(nil) {
			n += l.Posted
		}
		return n
	}
	for _, x := range []struct {
		size int
		want uint32
	}{{8192, 1}, {8193, 2}, {65536, 2}, {100_000, 4}} {
		before := posted()
		if tx.pass(t, rx, x.size); posted()-before != x.want {
			t.Errorf("%d bytes: %d requests, want %d", x.size, posted()-before, x.want)
		}
	}
}

// A flush finds a slot when receives have taken all that they may, and more
// flushes than there are slots are refused, which is no end of the comm.
func TestLaneFlushSlots(t *testing.T) {
	tx, rx := laneConnected(t, laneProvider(t), laneConfig{lanes: 2, width: 1, depth: 64, flush: true, flushAlways: true})
	var recvs []uintptr
	for {
		r, rc := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
		if rc != 0 {
			t.Fatal(rc)
		}
		if r == 0 {
			break
		}
		recvs = append(recvs, r)
	}
	if len(recvs) != 256 {
		t.Fatalf("%d receives", len(recvs))
	}
	var flushes []uintptr
	for {
		f, rc := hostcalls.Iflush(rx.handle, rx.buf(0, 8, 0))
		if rc != 0 {
			if got := hostcalls.LastFault(); got.Kind != 6 || rx.comm.Snapshot().Code != 0 {
				t.Errorf("code %d, %+v, comm's code %d", rc, got, rx.comm.Snapshot().Code)
			}
			break
		}
		if f == 0 || len(flushes) > 1000 {
			t.Fatalf("flush %d: %#x", len(flushes), f)
		}
		flushes = append(flushes, f)
	}
	if len(flushes) != 256 {
		t.Errorf("%d flushes", len(flushes))
	}
	if _, rc := hostcalls.Finish(t, flushes...); rc != 0 {
		t.Fatal(rc, hostcalls.LastFault())
	}
	for _, r := range recvs {
		s, rc := hostcalls.Send(t, tx.handle, tx.buf(0, 8, 0))
		if rc == 0 {
			_, rc = hostcalls.Finish(t, r, s)
		}
		if rc != 0 {
			t.Fatal(rc, hostcalls.LastFault())
		}
	}
}
