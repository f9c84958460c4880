package choose

import (
	"math"
	"testing"

	"weft/collnet/schedule"
)

// The model counts what the plans really have: rounds and messages to one, bytes and reductions to the rounding of shares.
func TestCostsAreThoseOfPlans(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 12, 16, 33, 64} {
		for a := schedule.OneShot; a.Does(schedule.AllReduce, 4); a++ {
			for k := schedule.AllReduce; k <= schedule.ReduceScatter; k++ {
				for _, bytes := range [][2]int{{4, 4}, {2, 4}, {1, 4}} {
					op := schedule.Op{Kind: k, N: n, Count: 1 << 20, Elem: bytes[0], Acc: bytes[1]}
					if a.Does(k, n) {
						compare(t, op, a)
					}
				}
			}
		}
	}
}

func compare(t *testing.T, op schedule.Op, a schedule.Algorithm) {
	t.Helper()
	want := costOf(op, a)
	var got cost
	chunk := schedule.Chunks(op, a, 1<<40)[0]
	for op.Rank = range op.N {
		p, err := schedule.Make(op, a, nil, chunk)
		if err != nil {
			t.Fatal(err)
		}
		var one cost
		for _, r := range p.Rounds {
			one.messages += float64(len(r.Sends))
			for _, s := range r.Sends {
				one.sent += float64(s.Span.Len)
			}
			for _, d := range r.Reduces {
				for _, s := range d.Src {
					one.reduced += float64(s.Len)
				}
			}
		}
		got.rounds = max(got.rounds, float64(len(p.Rounds)))
		got.messages, got.sent, got.reduced = max(got.messages, one.messages), max(got.sent, one.sent), max(got.reduced, one.reduced)
	}
	// A guest's data are sent to its host and back, which no one rank sends both.
	slack := 0.002
	if op.N&(op.N-1) != 0 && (a == schedule.Doubling || a == schedule.Halving) {
		slack = 0.5
	} else if got.messages != want.messages {
		t.Errorf("%v of %v, %d ranks: %v messages, the model has %v", op.Kind, a, op.N, got.messages, want.messages)
	}
	if got.rounds != want.rounds {
		t.Errorf("%v of %v, %d ranks: %v rounds, the model has %v", op.Kind, a, op.N, got.rounds, want.rounds)
	}
	for what, pair := range map[string][2]float64{"sent": {got.sent, want.sent}, "reduced": {got.reduced, want.reduced}} {
		if math.Abs(pair[0]-pair[1]) > slack*pair[1] {
			t.Errorf("%v of %v, %d ranks, %d and %d bytes: %.0f bytes %s, the model has %.0f", op.Kind, a, op.N, op.Elem, op.Acc, pair[0], what, pair[1])
		}
	}
}
