package route

import (
	"slices"
	"testing"
	"time"

	"weft/transport/fastpath"
)

// play has lanes of some rates (bytes/s) carry messages for so many turns: every
// message is cut by the weights, and takes as long as its slowest share. wait is
// how long a message takes where no lane is what limits it.
func play(s *Shares, rates, speeds []float64, turns int, wait time.Duration, total []fastpath.LaneRate) (throughput float64) {
	const size = 1 << 20
	w := s.Turn(total, speeds)
	for range turns {
		bytes, took := 0.0, time.Duration(0)
		for took < 250*time.Millisecond {
			longest := wait
			for i, share := range parts(s.shares) {
				t := max(wait, time.Duration(share*size/rates[i]*1e9))
				total[i].Bytes += uint64(share * size)
				total[i].Busy += t
				longest = max(longest, t)
			}
			bytes, took = bytes+size, took+longest
		}
		throughput = bytes / took.Seconds()
		if next := s.Turn(total, speeds); next != nil {
			w = next
		}
	}
	for _, x := range w {
		if x < 1 || x > fastpath.MaxWeight {
			return -1
		}
	}
	return throughput
}

// Shares follow what lanes do: when one is slower than its port promises, when
// it is throttled, and when it recovers.
func TestStripingFollows(t *testing.T) {
	for _, speeds := range [][]float64{{1, 1}, {4, 1}, {1, 100}} {
		s, total := &Shares{}, make([]fastpath.LaneRate, 2)
		for _, rates := range [][]float64{{0.4e9, 0.1e9}, {0.2e9, 0.1e9}, {0.01e9, 0.1e9}, {0.4e9, 0.1e9}, {0.4e9, 0.4e9}} {
			got := play(s, rates, speeds, 40, 0, total)
			least := 0.95
			if speeds[0] != speeds[1] {
				least = 0.9 // the pull is towards what the ports promise
			}
			if sum := rates[0] + rates[1]; got < least*sum {
				t.Errorf("speeds %v, lanes of %v: %.0f of %.0f, shares %.3f", speeds, rates, got, sum, s.shares)
			}
		}
	}
}

// Where lanes are not what limits a transfer, shares come back to what the ports promise.
func TestStripingDoesNotDrift(t *testing.T) {
	s, total, speeds := &Shares{}, make([]fastpath.LaneRate, 3), []float64{2, 1, 1}
	play(s, []float64{1e8, 1e9, 1e9}, speeds, 40, 0, total)
	if s.shares[0] > 0.1 {
		t.Fatalf("%.3f", s.shares)
	}
	play(s, []float64{1e12, 1e12, 1e12}, speeds, 1000, time.Millisecond, total)
	for i, want := range parts(speeds) {
		if got := s.shares[i]; got < want-0.05 || got > want+0.05 {
			t.Errorf("%.3f", s.shares)
		}
	}
}

// Lanes share what their ports promise, on either side.
func TestSpeedsOfLanes(t *testing.T) {
	pair := func(local, speed, peer, peerSpeed int) *Pair {
		return &Pair{LocalIndex: uint16(local), Speed: speed, PeerIndex: uint16(peer), PeerSpeed: peerSpeed}
	}
	fast, slow := pair(0, 400, 0, 400), pair(1, 100, 1, 400)
	for _, c := range []struct {
		over []*Pair
		want []float64
	}{
		{[]*Pair{fast}, []float64{400}},
		{[]*Pair{fast, slow}, []float64{400, 100}},
		{[]*Pair{fast, slow, fast, slow}, []float64{200, 50, 200, 50}},
		{[]*Pair{pair(0, 100, 1, 100), pair(2, 100, 0, 100), pair(1, 100, 1, 100)}, []float64{50, 100, 50}}, // three here, two there
		{[]*Pair{pair(0, 100, 1, 400), pair(2, 100, 1, 400)}, []float64{100, 100}},
		{[]*Pair{fast, pair(1, 0, 1, 400)}, []float64{1, 1}},
	} {
		if got := Speeds(c.over); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// One turn moves no share far, no lane is forgotten, and what says nothing changes nothing.
func TestStripingSteps(t *testing.T) {
	s, speeds := &Shares{}, []float64{1, 1}
	total := make([]fastpath.LaneRate, 2)
	s.Turn(total, speeds)
	if w := s.Turn(total, speeds); w != nil {
		t.Errorf("idle lanes: %v", w)
	}
	total[0].Bytes, total[0].Busy = 1<<30, time.Second
	total[1].Bytes, total[1].Busy = 1, time.Second
	if s.Turn(total, speeds); s.shares[1] < 0.2 {
		t.Errorf("%.3f after a turn", s.shares)
	}
	for range 20 {
		total[0].Bytes, total[0].Busy = total[0].Bytes+1<<30, total[0].Busy+time.Second
		total[1].Busy += time.Second
		s.Turn(total, speeds)
	}
	if s.shares[1] < stripeLeast/4 {
		t.Errorf("%.4f: a lane is forgotten", s.shares)
	}
	total = append(total, fastpath.LaneRate{})
	if w := s.Turn(total, []float64{1, 1, 2}); len(w) != 3 || w[2] != fastpath.MaxWeight {
		t.Errorf("%v: a further lane", w)
	}
}

// The executor adds bytes before time, and is read in between: time without
// bytes says nothing, and in particular not that all lanes are infinitely slow.
func TestStripingHalfASample(t *testing.T) {
	s, total, speeds := &Shares{}, make([]fastpath.LaneRate, 2), []float64{1, 3}
	s.Turn(total, speeds)
	total[0].Busy = 2 * stripeSeen
	s.Turn(total, speeds)
	if s.shares[0] != 0.25 || s.shares[1] != 0.75 {
		t.Errorf("shares %v", s.shares)
	}
}
