// Numbers of all types, one at a time and without branches, so that compilers vectorise loops over them.
#ifndef WF_NUMBERS_H
#define WF_NUMBERS_H

#include <stdint.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))
#define APART __attribute__((noinline)) // else compilers warn of what is not written where there are no elements

// Of a loop over elements, none of which depends on another's result: dst is a source, or apart from all.
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLLED _Pragma("clang loop unroll_count(4)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#define UNROLLED _Pragma("GCC unroll 4")
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
ALWAYS float scaled32(float a, float b) { return 256 * a * b; } // of 256ths, in 256ths

// The exponent moves to where float has it. A subnormal number has no leading bit: one is put before it and taken away
// again, which is exact. That subtraction is done of every number, so that it needs no branch.
ALWAYS float widen_half(uint32_t e) {
	int32_t abs = (e & 0x7fff) << 13;
	int32_t bias = 112 << 23;
	int32_t lead = abs < 1 << 23 ? 1 << 23 : 0;
	int32_t led = abs < 1 << 23 ? bias + (1 << 23) : 0;
	int32_t number = (abs + bias + lead) | (abs >= 0x0f800000 ? 0x7f800000 : 0);
	return float_of(bits32(float_of(number) - float_of(led)) | e >> 15 << 31);
}

ALWAYS float widen_bfloat(uint32_t e) { return float_of(e << 16); }

// A float whose last place is that of the result at x is added to x, which rounds x to it: how many such places x has
// is what the sum's bits are beyond those of the float. The float steps with the exponent, as the result does; all
// subnormal numbers have one last place. What is above the largest number becomes 65536, the next: infinity.
ALWAYS uint32_t round_half(float x) {
	int32_t u = bits32(quiet32(x)), abs = u & 0x7fffffff;
	int32_t up = 13 << 23;
	int32_t least = 113 << 23;
	int32_t top = abs < 0x47800000 ? abs : 0x47800000;
	int32_t exponent = top & 0x7f800000;
	int32_t of = exponent > least ? exponent : least;
	int32_t places = bits32(float_of(top) + float_of(of + up)) - (of + up);
	int32_t r = places + ((of - least) >> 13);
	return r | (u >> 16 & 0x8000) | (abs > 0x7f800000 ? 0x7fff : 0);
}

// In the upper half of the word, whose lower half has what was rounded away.
ALWAYS uint32_t round_upper(float x) {
	uint32_t u = bits32(x);
	uint32_t r = u + 0x7fff + (u >> 16 & 1);
	return x == x ? r : 0x7fff0000;
}

ALWAYS uint32_t round_bfloat(float x) { return round_upper(x) >> 16; }

// Elements of 8 bits are the upper places of halves, subnormal ones included: an e5m2 of the half of its value, an
// e4m3, whose exponent has a bit less, of the half of a 256th of it.
enum { SCALE_e5m2 = 1, SCALE_e4m3 = 256 };

ALWAYS uint32_t half_of_e5m2(uint32_t e) { return e << 8; }

// Its only NaN, all ones, carries into the largest exponent that a half has.
ALWAYS uint32_t half_of_e4m3(uint32_t e) {
	uint16_t h = (uint16_t)((int8_t)e * 128) & 0xbfff;
	return h | ((h + 0x80) & 0x4000);
}

// What is above the largest number becomes that, and 0x7fff, the only NaN here, 0x7f.
#define OF_HALF(name, shift, largest)                                                        \
	ALWAYS uint32_t name(uint16_t h) {                                                   \
		int16_t abs = h & 0x7fff;                                                    \
		int16_t top = abs < (largest) ? abs : (largest);                             \
		uint16_t even = top >> (shift) & 1;                                          \
		uint16_t r = (uint16_t)(top + (1 << ((shift) - 1)) - 1 + even) >> (shift);   \
		r |= h >> 8 & 0x80;                                                          \
		return h == 0x7fff ? 0x7f : r;                                               \
	}
OF_HALF(round_e5m2, 8, 0x7b00) // 57344
OF_HALF(round_e4m3, 7, 0x3f00) // 448

// x for a half that is rounded to 8 bits: the sixth place says whether there was anything from there on. That is no tie
// unless x is.
ALWAYS float six_places(float x) {
	uint32_t u = bits32(x);
	return float_of((u | ((u & 0x3ffff) + 0x3ffff)) & 0xfffc0000);
}

// The larger and the smaller of two elements, in the order of integers: no conversion is needed. NaNs, so many of each
// sign, lie beyond infinity; turned around they are at the end that loses. What is above the largest becomes that.
#define EXTREME_OF(name, bits, than, turn, back, nans, largest)                                       \
	ALWAYS uint32_t name(int##bits##_t a, int##bits##_t b) {                                      \
		const int##bits##_t all = INT##bits##_MAX;                                            \
		int##bits##_t x = (a < 0 ? a ^ all : a) turn (nans);                                  \
		int##bits##_t y = (b < 0 ? b ^ all : b) turn (nans);                                  \
		int##bits##_t r = (x than y ? x : y) back (nans);                                     \
		int##bits##_t abs = r < 0 ? ~r : r;                                                   \
		int##bits##_t top = abs < (largest) ? abs : (largest);                                \
		return abs > all - (nans) ? all : top | (r & ~all);                                   \
	}
#define EXTREMES_OF(type, bits, nans, largest)                       \
	EXTREME_OF(max_##type, bits, >, +, -, nans, largest)         \
	EXTREME_OF(min_##type, bits, <, -, +, nans, largest)
EXTREMES_OF(half, 16, 0x3ff, 0x7c00)
EXTREMES_OF(bfloat, 16, 0x7f, 0x7f80)
EXTREMES_OF(e4m3, 8, 1, 0x7e)
EXTREMES_OF(e5m2, 8, 3, 0x7b)

#endif
