package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"weft/abi"
)

var ops = []abi.RedOp{abi.Sum, abi.Prod, abi.Max, abi.Min}

// run reduces buffers of Go and returns the result.
func run(t testing.TB, k kind, dstAcc bool, srcs [][]byte, srcAcc bool, count int, of abi.DataType, op abi.RedOp) []byte {
	t.Helper()
	size := Size(of)
	if dstAcc {
		size = AccSize(of)
	}
	dst := make([]byte, count*size+1)
	into(t, k, dst, dstAcc, srcs, srcAcc, count, of, op)
	return dst[:count*size]
}

func into(t testing.TB, k kind, dst []byte, dstAcc bool, srcs [][]byte, srcAcc bool, count int, of abi.DataType, op abi.RedOp) {
	t.Helper()
	var pins runtime.Pinner
	defer pins.Unpin()
	all := make([]unsafe.Pointer, len(srcs))
	for i, s := range srcs {
		all[i] = unsafe.Pointer(unsafe.SliceData(s))
		pins.Pin(unsafe.SliceData(s))
	}
	if err := k.reduce(unsafe.Pointer(unsafe.SliceData(dst)), dstAcc, all, srcAcc, count, of, op); err != nil {
		t.Fatal(err)
	}
}

// each runs a test on all kinds that this CPU is.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) { test(t, k) })
	}
}

// acc is the type in which a type is accumulated.
func acc(f float) float {
	if f.t == abi.Float64 {
		return float64s
	}
	return float32s
}

// apply is an operation of two numbers in the accumulator's type.
func apply(f float, op abi.RedOp, a, b float64) float64 {
	switch {
	case op == abi.Sum && f.t == abi.Float64:
		return a + b
	case op == abi.Prod && f.t == abi.Float64:
		return a * b
	case op == abi.Sum:
		return float64(float32(a) + float32(b))
	case op == abi.Prod:
		return float64(float32(a) * float32(b))
	case a != a:
		return b
	case b != b:
		return a
	case op == abi.Max:
		return math.Max(a, b) // +0 of two zeros
	}
	return math.Min(a, b)
}

// expected is what the rules of kernels.h make of the sources' elements at i.
func expected(f float, op abi.RedOp, dst float, srcs [][]byte, src float, i int) uint64 {
	x := src.value(get(srcs[0], src.bits/8, i))
	for _, s := range srcs[1:] {
		x = apply(f, op, x, src.value(get(s, src.bits/8, i)))
	}
	return dst.round(x)
}

func compare(t *testing.T, f float, op abi.RedOp, dstAcc bool, got []byte, srcs [][]byte, srcAcc bool, count int) {
	t.Helper()
	dst, src := f, f
	if dstAcc {
		dst = acc(f)
	}
	if srcAcc {
		src = acc(f)
	}
	wrong := 0
	for i := range count {
		want := expected(f, op, dst, srcs, src, i)
		if bits := get(got, dst.bits/8, i); bits != want {
			var of []string
			for _, s := range srcs {
				of = append(of, fmt.Sprintf("%#x", get(s, src.bits/8, i)))
			}
			t.Errorf("type %d op %d element %d of %d: %v is %#x, want %#x", f.t, op, i, count, of, bits, want)
			if wrong++; wrong > 5 {
				t.FailNow()
			}
		}
	}
}

// all are the elements of a type of at most 16 bits.
func all(f float) []byte {
	buf := make([]byte, (1<<f.bits)*f.bits/8)
	for i := range 1 << f.bits {
		put(buf, f.bits/8, i, uint64(i))
	}
	return buf
}

func TestEveryElementIsWidened(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for _, f := range narrow {
			srcs, n := [][]byte{all(f)}, 1<<f.bits
			compare(t, f, abi.Sum, true, run(t, k, true, srcs, false, n, f.t, abi.Sum), srcs, false, n)
			compare(t, f, abi.Sum, false, run(t, k, false, srcs, false, n, f.t, abi.Sum), srcs, false, n)
		}
	})
}

// Of every element: itself, half way to the next, and the floats around both.
func TestEveryRoundingIsToTheNearest(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for _, f := range narrow {
			var values []uint32
			for i := range uint64(1 << f.bits) {
				x, y := float32(f.value(i)), float32(f.value((i+1)&(1<<f.bits-1)))
				for _, v := range []float32{x, x + (y-x)/2} {
					at := math.Float32bits(v)
					values = append(values, at-1, at, at+1)
				}
			}
			src := make([]byte, 4*len(values))
			for i, v := range values {
				put(src, 4, i, uint64(v))
			}
			srcs := [][]byte{src}
			compare(t, f, abi.Sum, false, run(t, k, false, srcs, true, len(values), f.t, abi.Sum), srcs, true, len(values))
		}
	})
}

func TestEveryPairOfBytes(t *testing.T) {
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	for i := range a {
		a[i], b[i] = byte(i), byte(i>>8)
	}
	srcs := [][]byte{a, b}
	each(t, func(t *testing.T, k kind) {
		for _, op := range ops {
			for _, f := range []float{e4m3, e5m2} {
				compare(t, f, op, false, run(t, k, false, srcs, false, len(a), f.t, op), srcs, false, len(a))
				compare(t, f, op, true, run(t, k, true, srcs, false, len(a), f.t, op), srcs, false, len(a))
			}
			for _, of := range []abi.DataType{abi.Int8, abi.Uint8} {
				compareIntegers(t, of, op, run(t, k, false, srcs, false, len(a), of, op), srcs, len(a))
			}
		}
	})
}

// integer is an operation of two integers of a type, which are kept in the low bits.
func integer(of abi.DataType, op abi.RedOp, a, b uint64) uint64 {
	shift := 64 - 8*Size(of)
	signed := of == abi.Int8 || of == abi.Int32 || of == abi.Int64
	less := a < b
	if signed {
		less = int64(a<<shift) < int64(b<<shift)
	}
	switch {
	case op == abi.Sum:
		return (a + b) << shift >> shift
	case op == abi.Prod:
		return (a * b) << shift >> shift
	case less == (op == abi.Max):
		return b
	}
	return a
}

func compareIntegers(t *testing.T, of abi.DataType, op abi.RedOp, got []byte, srcs [][]byte, count int) {
	t.Helper()
	size := Size(of)
	for i := range count {
		want := get(srcs[0], size, i)
		for _, s := range srcs[1:] {
			want = integer(of, op, want, get(s, size, i))
		}
		if bits := get(got, size, i); bits != want {
			t.Fatalf("type %d op %d element %d of %d: %#x, want %#x", of, op, i, count, bits, want)
		}
	}
}

func TestIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	each(t, func(t *testing.T, k kind) {
		for _, of := range []abi.DataType{abi.Int8, abi.Uint8, abi.Int32, abi.Uint32, abi.Int64, abi.Uint64} {
			for _, op := range ops {
				for _, n := range []int{1, 2, 3, 8, 17} {
					srcs := make([][]byte, n)
					for i := range srcs {
						srcs[i] = make([]byte, 3000*Size(of))
						for j := range 3000 {
							put(srcs[i], Size(of), j, integerOf(r, Size(of)))
						}
					}
					compareIntegers(t, of, op, run(t, k, false, srcs, false, 3000, of, op), srcs, 3000)
				}
			}
		}
	})
}

// integerOf is any integer, or one of those at the ends of the signed and the unsigned range.
func integerOf(r *rand.Rand, size int) uint64 {
	if r.IntN(2) == 0 {
		return r.Uint64()
	}
	return []uint64{0, 1<<(8*size-1) - 1, ^uint64(0)}[r.IntN(3)] + uint64(r.IntN(2))
}

// special are the elements where a type changes its nature.
func special(f float) []uint64 {
	top, one, least := f.finite(f.top), f.finite(1), uint64(1)<<f.mantissa
	half := uint64(1) << (f.mantissa / 2)
	return []uint64{0, 1, 2, least - 1, least, least + 1, one - 1, one, one + 1, one + half, top - 1, top, top + 1, top + 2, 1<<(f.bits-1) - 1}
}

func numberOf(r *rand.Rand, f float) uint64 {
	sign := uint64(r.IntN(2)) << (f.bits - 1)
	switch r.IntN(4) {
	case 0:
		s := special(f)
		return sign | s[r.IntN(len(s))]
	case 1:
		return r.Uint64() << (64 - f.bits) >> (64 - f.bits)
	}
	return sign | f.round(math.Ldexp(r.Float64()+0.5, r.IntN(8)-4)) // of like size, so that sums lose places
}

func numbers(r *rand.Rand, f float, n int) []byte {
	buf := make([]byte, n*f.bits/8)
	for i := range n {
		put(buf, f.bits/8, i, numberOf(r, f))
	}
	return buf
}

func TestFloats(t *testing.T) {
	const count = 2500
	r := rand.New(rand.NewPCG(3, 4))
	each(t, func(t *testing.T, k kind) {
		for _, f := range floats {
			for _, op := range ops {
				for _, n := range []int{1, 2, 3, 8, 17} {
					for mode := range 4 {
						dstAcc, srcAcc := mode&1 == 1, mode&2 == 2
						src := f
						if srcAcc {
							src = acc(f)
						}
						srcs := make([][]byte, n)
						for i := range srcs {
							srcs[i] = numbers(r, src, count)
						}
						compare(t, f, op, dstAcc, run(t, k, dstAcc, srcs, srcAcc, count, f.t, op), srcs, srcAcc, count)
					}
				}
			}
		}
	})
}

// An element's result depends neither on its place nor on how many there are, and nothing is written beside the result.
func TestPlacesAndLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	each(t, func(t *testing.T, k kind) {
		for of := range abi.NumTypes {
			size := Size(of)
			f := slices.IndexFunc(floats, func(f float) bool { return f.t == of })
			for _, op := range ops {
				srcs := make([][]byte, 3)
				for i := range srcs {
					srcs[i] = make([]byte, 80*size)
					for j := range 80 {
						if f >= 0 {
							put(srcs[i], size, j, numberOf(r, floats[f]))
						} else {
							put(srcs[i], size, j, integerOf(r, size))
						}
					}
				}
				for _, n := range []int{2, 3} {
					want := run(t, k, false, srcs[:n], false, 80, of, op)
					for count := range 71 {
						for offset := range 4 {
							placed(t, k, of, op, srcs[:n], want, count, offset)
						}
					}
				}
			}
		}
	})
}

// placed reduces count elements from the offset on, in buffers that begin at odd addresses: into one of its own, and into each source.
func placed(t *testing.T, k kind, of abi.DataType, op abi.RedOp, srcs [][]byte, want []byte, count, offset int) {
	t.Helper()
	size := Size(of)
	for in := -1; in < len(srcs); in++ {
		moved := make([][]byte, len(srcs))
		for i, s := range srcs {
			moved[i] = append(make([]byte, 2*i+1), s[offset*size:]...)[2*i+1:]
		}
		dst := slices.Repeat([]byte{0xa5}, 80*size+1)[1:]
		if in >= 0 {
			dst = moved[in]
		}
		before := slices.Clone(dst)
		into(t, k, dst, false, moved, false, count, of, op)
		if string(dst[:count*size]) != string(want[offset*size:(offset+count)*size]) {
			t.Fatalf("type %d op %d: %d elements from %d on differ from those of the whole", of, op, count, offset)
		}
		if string(dst[count*size:]) != string(before[count*size:]) {
			t.Fatalf("type %d op %d: something was written beside %d elements", of, op, count)
		}
	}
}
