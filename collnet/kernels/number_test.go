package kernels

import (
	"encoding/binary"
	"math"

	"weft/abi"
)

// float is a floating-point type as its standard has it, apart from how kernels compute with it.
type float struct {
	t         abi.DataType
	bits      int // of an element
	mantissa  int
	bias      int
	top       float64 // the largest number
	saturates bool    // becomes top, not infinity
	nan       uint64  // what a NaN becomes
}

var (
	float16  = float{abi.Float16, 16, 10, 15, 65504, false, 0x7fff}
	bfloat16 = float{abi.Bfloat16, 16, 7, 127, math.Ldexp(255, 120), false, 0x7fff}
	e4m3     = float{abi.Float8e4m3, 8, 3, 7, 448, true, 0x7f}
	e5m2     = float{abi.Float8e5m2, 8, 2, 15, 57344, true, 0x7f}
	float32s = float{abi.Float32, 32, 23, 127, math.MaxFloat32, false, 0x7fffffff}
	float64s = float{abi.Float64, 64, 52, 1023, math.MaxFloat64, false, 0x7fffffffffffffff}
)

var (
	narrow = []float{float16, bfloat16, e4m3, e5m2}
	floats = []float{float16, bfloat16, e4m3, e5m2, float32s, float64s}
)

// value is the number that the bits of an element are.
func (f float) value(bits uint64) float64 {
	sign := 1.0
	if bits>>(f.bits-1)&1 == 1 {
		sign = -1
	}
	m := bits & (1<<f.mantissa - 1)
	e := int(bits &^ (1 << (f.bits - 1)) >> f.mantissa)
	last := 1<<(f.bits-1-f.mantissa) - 1 // the largest exponent
	switch {
	case f.t == abi.Float8e4m3 && e == last && m == 7:
		return math.NaN()
	case f.t != abi.Float8e4m3 && e == last && m != 0:
		return math.NaN()
	case f.t != abi.Float8e4m3 && e == last:
		return math.Inf(int(sign))
	case e == 0:
		return math.Copysign(math.Ldexp(float64(m), 1-f.bias-f.mantissa), sign)
	}
	return sign * math.Ldexp(float64(m|1<<f.mantissa), e-f.bias-f.mantissa)
}

// place is the distance of the numbers of the type around x.
func (f float) place(x float64) float64 {
	_, e := math.Frexp(x) // x < 2^e
	return math.Ldexp(1, max(e-1, 1-f.bias)-f.mantissa)
}

// round is x in the type: to the nearest, of two to the even one.
func (f float) round(x float64) uint64 {
	if f.t == abi.Float64 {
		if x != x {
			return f.nan
		}
		return math.Float64bits(x)
	}
	sign := uint64(0)
	if math.Signbit(x) {
		sign = 1 << (f.bits - 1)
	}
	infinite := sign | (1<<(f.bits-1)-1)&^(1<<f.mantissa-1)
	x = math.Abs(x)
	switch {
	case x != x:
		return f.nan
	case math.IsInf(x, 0) && !f.saturates:
		return infinite
	case math.IsInf(x, 0):
		return sign | f.finite(f.top)
	}
	x = math.RoundToEven(x/f.place(x)) * f.place(x)
	switch {
	case x > f.top && f.saturates:
		return sign | f.finite(f.top)
	case x > f.top:
		return infinite
	}
	return sign | f.finite(x)
}

// finite is the bits of a positive number of the type.
func (f float) finite(x float64) uint64 {
	m := uint64(x / f.place(x))
	if m < 1<<f.mantissa { // subnormal
		return m
	}
	_, e := math.Frexp(x)
	return uint64(e-1+f.bias)<<f.mantissa | m&(1<<f.mantissa-1)
}

// get and put are an element at an index of a buffer; they are as many bytes as fit.
func get(buf []byte, size, i int) uint64 {
	var word [8]byte
	copy(word[:], buf[i*size:(i+1)*size])
	return binary.LittleEndian.Uint64(word[:])
}

func put(buf []byte, size, i int, bits uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], bits)
	copy(buf[i*size:(i+1)*size], word[:size])
}
