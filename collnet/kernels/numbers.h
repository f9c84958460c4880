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

// A choice between two values that are both computed: compilers make branches of ?: around what may trap.
ALWAYS float choose32(int first, float a, float b) {
	uint32_t mask = -(uint32_t)first;
	return float_of((bits32(a) & mask) | (bits32(b) & ~mask));
}

// Baseline x86-64 has no 64-bit masks, and nothing here is done between such choices.
ALWAYS double choose64(int first, double a, double b) { return first ? a : b; }

// Whichever NaN a CPU made is replaced.
ALWAYS float quiet32(float x) { return choose32(x == x, x, float_of(0x7fffffff)); }
ALWAYS double quiet64(double x) { return choose64(x == x, x, double_of(0x7fffffffffffffff)); }

// Of equal numbers only zeros differ, in their sign. The last line is for a NaN in b; one in a compares with nothing.
#define EXTREME(name, number, bits, of, choose, than, both)           \
	ALWAYS number name(number a, number b) {                      \
		number equal = of(bits(a) both bits(b));              \
		number r = choose(a than b, a, b);                    \
		r = choose(a == b, equal, r);                         \
		return choose(b == b, r, a);                          \
	}
EXTREME(max32, float, bits32, float_of, choose32, >, &)
EXTREME(min32, float, bits32, float_of, choose32, <, |)
EXTREME(max64, double, bits64, double_of, choose64, >, &)
EXTREME(min64, double, bits64, double_of, choose64, <, |)

ALWAYS float sum32(float a, float b) { return a + b; }
ALWAYS float prod32(float a, float b) { return a * b; }

// The exponent moves to where float has it. A subnormal number has no leading bit: one is put before it and taken away
// again, which is exact. That subtraction is done of every number, so that it needs no branch.
#define WIDEN(name, sign, exponent_of_one, mantissa, special) \
	ALWAYS float name(uint32_t e) { \
		uint32_t abs = (e & ((1u << (sign)) - 1)) << (23 - (mantissa)); \
		uint32_t bias = (127u - (exponent_of_one)) << 23; \
		uint32_t lead = abs < 1u << 23 ? 1u << 23 : 0; \
		uint32_t led = abs < 1u << 23 ? bias + (1u << 23) : 0; \
		uint32_t number = (abs + bias + lead) | (abs >= (special) ? 0x7f800000 : 0); \
		return float_of(bits32(float_of(number) - float_of(led)) | (e >> (sign)) << 31); \
	}
WIDEN(widen_half, 15, 15, 10, 0x0f800000)
WIDEN(widen_e4m3, 7, 7, 3, 0x07f00000)

ALWAYS float widen_bfloat(uint32_t e) { return float_of(e << 16); }
ALWAYS float widen_e5m2(uint32_t e) { return widen_half(e << 8); }

// A float whose last place is that of the result at x is added to x, which rounds x to it: how many such places x has
// is what the sum's bits are beyond those of the float. The float steps with the exponent, as the result does; all
// subnormal numbers have one last place. What is above the largest number becomes that, or the next: infinity.
#define ROUND(name, sign, exponent_of_one, mantissa, largest, nan) \
	ALWAYS uint32_t name(float x) { \
		uint32_t u = bits32(quiet32(x)), abs = u & 0x7fffffff;                                \
		uint32_t up = (23u - (mantissa)) << 23;                                               \
		uint32_t least = (128u - (exponent_of_one)) << 23;                                    \
		uint32_t top = abs < (largest) ? abs : (largest);                                     \
		uint32_t exponent = top & 0x7f800000;                                                 \
		uint32_t of = exponent > least ? exponent : least;                                    \
		uint32_t places = bits32(float_of(top) + float_of(of + up)) - (of + up);              \
		uint32_t r = places + ((of - least) >> (23 - (mantissa)));                            \
		return r | u >> 31 << (sign) | (abs > 0x7f800000 ? (nan) : 0);                        \
	}
ROUND(round_half, 15, 15, 10, 0x47800000, 0x7fff) // 65536
ROUND(round_e4m3, 7, 7, 3, 0x43e00000, 0x7f)      // 448
ROUND(round_e5m2, 7, 15, 2, 0x47600000, 0x7f)     // 57344

// In the upper half of the word, whose lower half has what was rounded away.
ALWAYS uint32_t round_upper(float x) {
	uint32_t u = bits32(x);
	uint32_t r = u + 0x7fff + (u >> 16 & 1);
	return x == x ? r : 0x7fff0000;
}

ALWAYS uint32_t round_bfloat(float x) { return round_upper(x) >> 16; }

#endif
