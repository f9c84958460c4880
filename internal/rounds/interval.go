package rounds

import (
	"math"
	"slices"
)

// fewest are the rounds below which no two of them bound the median with 95 % confidence.
const fewest = 6

// Interval bounds, with at least 95 % confidence, the median of what v are independent samples of, however that is
// distributed: between which of the sorted samples it lies is a matter of coin tosses alone. Of less than six samples
// nothing is known: the bounds are infinite.
func Interval(v []float64) (low, high float64) {
	n := len(v)
	if n < fewest {
		return math.Inf(-1), math.Inf(1)
	}
	// The median lies below the k-th smallest only if fewer than k samples are below it.
	k, one, sum := 0, math.Pow(0.5, float64(n)), 0.0
	for ; sum+one <= 0.025 && k < n/2; k++ {
		sum += one
		one *= float64(n-k) / float64(k+1)
	}
	s := slices.Sorted(slices.Values(v))
	return s[k-1], s[n-k]
}

// Ratios of what was measured in the same rounds.
func Ratios(a, b []float64) []float64 {
	r := slices.Clone(a)
	for i := range r {
		r[i] /= b[i]
	}
	return r
}
