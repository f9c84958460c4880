package summary

import "slices"

// quantile of values, which it sorts; 0 where there are none.
func quantile[T int64 | uint64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func median[T int64 | uint64](values []T) T { return quantile(values, 0.5) }
