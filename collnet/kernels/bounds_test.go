package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"weft/abi"
)

// exact is the sum or the product without rounding, and the sum of magnitudes.
func exact(op abi.RedOp, xs []float64) (value, magnitude *big.Float) {
	one := func(x float64) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(x) }
	value, magnitude = one(xs[0]), one(math.Abs(xs[0]))
	for _, x := range xs[1:] {
		if op == abi.Prod {
			value.Mul(value, one(x))
		} else {
			value.Add(value, one(x))
		}
		magnitude.Add(magnitude, one(math.Abs(x)))
	}
	return value, magnitude
}

// A sum of k numbers is off by less than (k-1)u of the sum of their magnitudes, a product by (k-1)u of itself, with u half a
// place of the accumulator and u' = u/(1-ku) for its powers; then rounding to the type adds half a place there. Sources
// are of a size at which nothing overflows, and no product is subnormal in the accumulator.
func TestErrorsAreBounded(t *testing.T) {
	const count = 400
	r := rand.New(rand.NewPCG(7, 8))
	each(t, func(t *testing.T, k kind) {
		for _, f := range floats {
			u := math.Ldexp(1, -24)
			if f.t == abi.Float64 {
				u = math.Ldexp(1, -53)
			}
			for _, op := range []abi.RedOp{abi.Sum, abi.Prod} {
				for _, n := range []int{2, 3, 8, 17} {
					srcs := make([][]byte, n)
					for i := range srcs {
						srcs[i] = make([]byte, count*f.bits/8)
						for j := range count {
							x := (0.75 + r.Float64()*0.5) * (1 - 2*float64(r.IntN(2)))
							put(srcs[i], f.bits/8, j, f.round(x))
						}
					}
					got := run(t, k, false, srcs, false, count, f.t, op)
					for j := range count {
						xs := make([]float64, n)
						for i := range srcs {
							xs[i] = f.value(get(srcs[i], f.bits/8, j))
						}
						bounded(t, f, op, u, xs, f.value(get(got, f.bits/8, j)))
					}
				}
			}
		}
	})
}

func bounded(t *testing.T, f float, op abi.RedOp, u float64, xs []float64, got float64) {
	t.Helper()
	value, magnitude := exact(op, xs)
	if op == abi.Prod {
		magnitude.Abs(value)
	}
	m, _ := magnitude.Float64()
	steps := float64(len(xs) - 1)
	accumulated := steps * u / (1 - steps*u) * m
	v, _ := value.Float64()
	bound := accumulated
	if f.bits < 32 {
		bound += f.place(math.Abs(v)+accumulated) / 2
	}
	off, _ := value.Sub(value, big.NewFloat(got)).Float64()
	if !(math.Abs(off) <= bound) {
		t.Fatalf("type %d op %d of %v: %g, off by %g, at most %g is allowed", f.t, op, xs, got, off, bound)
	}
}

// Of two sources either may be the first. Whichever NaN was there, it is one afterwards.
func TestTwoSourcesCommute(t *testing.T) {
	const count = 5000
	r := rand.New(rand.NewPCG(9, 10))
	each(t, func(t *testing.T, k kind) {
		for _, f := range floats {
			a, b := numbers(r, f, count), numbers(r, f, count)
			for _, op := range ops {
				ab := run(t, k, false, [][]byte{a, b}, false, count, f.t, op)
				ba := run(t, k, false, [][]byte{b, a}, false, count, f.t, op)
				if string(ab) != string(ba) {
					t.Errorf("type %d op %d: a and b are not b and a", f.t, op)
				}
			}
		}
	})
}
