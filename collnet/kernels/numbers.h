// Numbers of all types, one at a time and without branches, so that compilers vectorise loops over them.
#ifndef WF_NUMBERS_H
#define WF_NUMBERS_H

#include <stdint.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

// Of a loop over elements, none of which depends on another's result: dst is a source, or apart from all.
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// Elements in buffers, which need not be aligned.
#define ELEMENT __attribute__((aligned(1), may_alias))
typedef int8_t int8 ELEMENT;
typedef uint8_t uint8 ELEMENT;
typedef int32_t int32 ELEMENT;
typedef uint32_t uint32 ELEMENT;
typedef int64_t int64 ELEMENT;
typedef uint64_t uint64 ELEMENT;
typedef float float32 ELEMENT;
typedef double float64 ELEMENT;
typedef uint16_t half ELEMENT;
typedef uint16_t bfloat ELEMENT;
typedef uint8_t e4m3 ELEMENT;
typedef uint8_t e5m2 ELEMENT;

ALWAYS uint32_t bits32(float x) {
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

ALWAYS float float_of(uint32_t u) {
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

ALWAYS uint64_t bits64(double x) {
	uint64_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

ALWAYS double double_of(uint64_t u) {
	double x;
	memcpy(&x, &u, sizeof x);
	return x;
}

// Whichever NaN a CPU made is replaced.
ALWAYS float quiet32(float x) { return x == x ? x : float_of(0x7fffffff); }
ALWAYS double quiet64(double x) { return x == x ? x : double_of(0x7fffffffffffffff); }

// Of equal numbers only zeros differ, in their sign. The last line is for a NaN in b; one in a never compares greater.
#define EXTREME(name, number, bits, of, than, both)                   \
	ALWAYS number name(number a, number b) {                      \
		number r = a than b ? a : b;                          \
		number same = of(bits(a) both bits(b));               \
		r = a == b ? same : r;                                \
		return b == b ? r : a;                                \
	}
EXTREME(max32, float, bits32, float_of, >, &)
EXTREME(min32, float, bits32, float_of, <, |)
EXTREME(max64, double, bits64, double_of, >, &)
EXTREME(min64, double, bits64, double_of, <, |)

ALWAYS float sum32(float a, float b) { return a + b; }
ALWAYS float prod32(float a, float b) { return a * b; }

// The exponent moves to where float has it. A subnormal number has no leading bit, so one is put before it and taken
// away again, which is exact.
#define WIDEN(name, sign, exponent_of_one, mantissa, is_nan_or_infinite, what_it_is)          \
	ALWAYS float name(uint32_t e) {                                                       \
		uint32_t abs = (e & ((1u << (sign)) - 1)) << (23 - (mantissa));               \
		uint32_t bias = (127u - (exponent_of_one)) << 23;                             \
		uint32_t normal = abs + bias;                                                 \
		float one = float_of(bias + (1u << 23));                                      \
		uint32_t subnormal = bits32(float_of(normal + (1u << 23)) - one);             \
		uint32_t r = abs < 1u << 23 ? subnormal : normal;                             \
		r = is_nan_or_infinite ? what_it_is : r;                                      \
		return float_of(r | (e >> (sign)) << 31);                                     \
	}
WIDEN(widen_half, 15, 15, 10, abs >= 0x0f800000, abs + 0x70000000)
WIDEN(widen_e4m3, 7, 7, 3, abs >= 0x07f00000, 0x7fffffff)

ALWAYS float widen_bfloat(uint32_t e) { return float_of(e << 16); }
ALWAYS float widen_e5m2(uint32_t e) { return widen_half(e << 8); }

// Integer addition of a bit less than half a place, and of the odd bit, carries into the places that stay. Subnormal
// numbers all have one last place; adding the float whose last place that is rounds to it.
#define ROUND(name, sign, exponent_of_one, mantissa, top, above, nan)                                \
	ALWAYS uint32_t name(float x) {                                                              \
		uint32_t abs = bits32(x) & 0x7fffffff;                                               \
		uint32_t bias = (127u - (exponent_of_one)) << 23;                                    \
		uint32_t odd = abs >> (23 - (mantissa)) & 1;                                         \
		uint32_t less = (1u << (22 - (mantissa))) - 1;                                       \
		uint32_t normal = (abs - bias + less + odd) >> (23 - (mantissa));                    \
		float place = float_of(bias + ((24u - (mantissa)) << 23));                           \
		uint32_t subnormal = bits32(float_of(abs) + place) - bits32(place);                  \
		uint32_t r = abs < bias + (1u << 23) ? subnormal : normal;                           \
		r = abs >= (top) ? (above) : r;                                                      \
		r |= bits32(x) >> 31 << (sign);                                                      \
		return abs > 0x7f800000 ? (nan) : r;                                                 \
	}
ROUND(round_half, 15, 15, 10, 0x477ff000, 0x7c00, 0x7fff) // 65520, half a place above the largest
ROUND(round_e4m3, 7, 7, 3, 0x43e00000, 0x7e, 0x7f)        // 448, the largest
ROUND(round_e5m2, 7, 15, 2, 0x47600000, 0x7b, 0x7f)       // 57344, the largest

ALWAYS uint32_t round_bfloat(float x) {
	uint32_t u = bits32(x);
	uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	return x == x ? r : 0x7fff;
}

#endif
