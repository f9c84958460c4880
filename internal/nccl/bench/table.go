package main

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/nccl"
	"weft/internal/rounds"
)

// row is an operation of one size: what each side took in each round, in microseconds.
type row struct {
	op        string
	bytes     int64
	took      [2][]float64
	disturbed int
}

type table []row

// add takes what a side took in a round.
func (t *table) add(side int, speeds []nccl.Speed, disturbed bool) error {
	for i, s := range speeds {
		if i == len(*t) {
			*t = append(*t, row{op: s.Op, bytes: s.Bytes})
		}
		r := &(*t)[i]
		if r.op != s.Op || r.bytes != s.Bytes {
			return fmt.Errorf("rank 0 timed %s of %d bytes where others timed %s of %d", s.Op, s.Bytes, r.op, r.bytes)
		}
		if disturbed {
			r.disturbed++
		}
		r.took[side] = append(r.took[side], s.Median)
	}
	return nil
}

// ratio is how often weft's time goes into the other's, of the medians; each round by itself is between least and most.
func (r row) ratio() (ratio, least, most float64) {
	var each []float64
	for i := range min(len(r.took[0]), len(r.took[1])) {
		each = append(each, r.took[1][i]/r.took[0][i])
	}
	return rounds.Median(r.took[1]) / rounds.Median(r.took[0]), slices.Min(each), slices.Max(each)
}

func (t table) String() string {
	var b strings.Builder
	for _, r := range t {
		if len(r.took[0]) == 0 || len(r.took[1]) == 0 {
			continue // it ended in its first round
		}
		ratio, least, most := r.ratio()
		fmt.Fprintf(&b, "  %-13s %10s %12.1f %12.1f %8.2f   %.2f to %.2f %s\n",
			r.op, size(r.bytes), rounds.Median(r.took[0]), rounds.Median(r.took[1]), ratio, least, most, rounds.Mark(r.disturbed))
	}
	return b.String()
}

// size is a number of bytes as the driver takes it.
func size(n int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{20, "M"}, {10, "K"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprint(n>>u.shift, u.name)
		}
	}
	return fmt.Sprint(n)
}
