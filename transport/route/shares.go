package route

import (
	"slices"
	"time"

	"weft/transport/fastpath"
)

// How lanes share messages (WEFT_STRIPING). The executor cuts a large one by the
// lanes' weights when it begins, and gives each lane as many of the small ones.
// It counts for each lane the bytes that are complete and the time in which it
// had some to move: of all that is cut, and of one in about 48 of the others,
// with what that waited for. Here the weights come from. They begin with the
// speeds of the lanes' ports. Then, with measured, the sending side's watch
// compares what the lanes did:
//
//   - A lane's rate is its bytes over its busy time, so an idle lane loses
//     nothing, and a small share tells as much as a large one: a lane that was
//     slow for a while is found to be fast again by the share that it has left.
//   - Weights move by at most half or twice per turn, and no lane gets less than
//     1 in 64 of an even share: it has to be looked at.
//   - Where lanes are not what limits a transfer their rates only repeat the
//     shares. A pull towards the ports' speeds keeps these from drifting.
const (
	stripeStep  = 2.0
	stripeLeast = 1.0 / 64
	stripePull  = 0.01
	stripeSeen  = 100 * time.Microsecond // busy time that says something
)

// Shares are how a comm's lanes share its messages. Only the watch uses them once
// the comm is open.
type Shares struct {
	last   []fastpath.LaneRate
	rates  []float64 // bytes/s; 0: not known
	shares []float64 // as they are set
}

// parts scales numbers so that their sum is 1.
func parts(of []float64) []float64 {
	sum := 0.0
	for _, x := range of {
		sum += x
	}
	out := make([]float64, len(of))
	for i, x := range of {
		out[i] = x / sum
	}
	return out
}

// Weights is the executor's form of shares.
func Weights(shares []float64) []uint32 {
	most := slices.Max(shares)
	out := make([]uint32, len(shares))
	for i, x := range shares {
		out[i] = max(1, uint32(x/most*fastpath.MaxWeight))
	}
	return out
}

// Turn takes what the lanes have done so far and returns how they are to share
// from now on; nil: as before.
func (s *Shares) Turn(now []fastpath.LaneRate, speeds []float64) []uint32 {
	if len(now) != len(s.last) { // the first turn, or further lanes have come
		*s = Shares{last: slices.Clone(now), rates: make([]float64, len(now)), shares: parts(speeds[:len(now)])}
		return Weights(s.shares)
	}
	speeds = parts(speeds[:len(now)])
	known, promised, news := 0.0, 0.0, false
	for i, is := range now {
		busy, bytes := is.Busy-s.last[i].Busy, is.Bytes-s.last[i].Bytes
		if busy >= stripeSeen && bytes > 0 {
			rate := float64(bytes) / busy.Seconds()
			if s.rates[i] == 0 {
				s.rates[i] = rate
			}
			s.rates[i] = (s.rates[i] + rate) / 2
			s.last[i], news = is, true
		}
		if s.rates[i] > 0 {
			known += s.rates[i]
			promised += speeds[i]
		}
	}
	if !news {
		return nil
	}
	want := make([]float64, len(now))
	for i := range want {
		if want[i] = s.rates[i]; want[i] == 0 { // as good as the others, for what its port promises
			want[i] = known / promised * speeds[i]
		}
	}
	want = parts(want)
	for i := range want {
		want[i] += stripePull * (speeds[i] - want[i])
		want[i] = min(max(want[i], s.shares[i]/stripeStep), s.shares[i]*stripeStep)
		want[i] = max(want[i], stripeLeast/float64(len(want)))
	}
	s.shares = parts(want)
	return Weights(s.shares)
}

// Speeds is how fast each lane is for what the ports promise between which it
// runs: the slower one decides, and lanes share what their ports have.
func Speeds(over []*Pair) []float64 {
	here, there := map[uint16]float64{}, map[uint16]float64{} // lanes
	for _, p := range over {
		here[p.LocalIndex]++
		there[p.PeerIndex]++
	}
	speeds := make([]float64, len(over))
	for i, p := range over {
		speeds[i] = min(float64(p.Speed)/here[p.LocalIndex], float64(p.PeerSpeed)/there[p.PeerIndex])
	}
	if slices.Min(speeds) == 0 { // one is not known
		return slices.Repeat([]float64{1}, len(over))
	}
	return speeds
}
