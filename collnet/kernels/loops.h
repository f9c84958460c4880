// Loops over buffers, for one kind of CPU: CPU names it and ends the names of its functions, TARGET is what they are
// compiled for. HOW_type is LOOP or VECTORS; OWN_BFLOAT_PAIRS says that bfloat_pair_sum and _prod are there.

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FUNCTION(name) TARGET APART static void JOIN(name, CPU)
#define V(function) JOIN(function, CPU)
#define SUM_AND_PROD(what, type) what(type, sum) what(type, prod)
// Elements one after the other, as compilers vectorise it; or vectors of LANES elements, after which the portable
// function does the rest.
#define LOOP(one, vector, rest)                  \
	INDEPENDENT                              \
	for (size_t i = 0; i < n; i++)           \
		one;
#define VECTORS(one, vector, rest)               \
	size_t i = 0;                            \
	UNROLLED                                 \
	for (; i + LANES <= n; i += LANES)       \
		vector;                          \
	rest;

// dst is a or b, or apart from both.
#define PLAIN(type, op, value)                                                                       \
	FUNCTION(type##_##op)(void* dst, const void* as, const void* bs, size_t n) {                 \
		const type* x = as, *y = bs;                                                         \
		type* z = dst;                                                                       \
		INDEPENDENT                                                                          \
		for (size_t i = 0; i < n; i++) {                                                     \
			__typeof__(+*x) a = x[i], b = y[i];                                          \
			z[i] = (value);                                                              \
		}                                                                                    \
	}

// Sums and products wrap, which C promises of unsigned types.
#define WRAPPING(type)             \
	PLAIN(type, sum, a + b)    \
	PLAIN(type, prod, a * b)
#define COMPARED(type)                     \
	PLAIN(type, max, a > b ? a : b)    \
	PLAIN(type, min, a < b ? a : b)
#define FLOATING(type, bits)                            \
	PLAIN(type, sum, quiet##bits(a + b))            \
	PLAIN(type, prod, quiet##bits(a * b))            \
	PLAIN(type, max, quiet##bits(max##bits(a, b)))  \
	PLAIN(type, min, quiet##bits(min##bits(a, b)))
WRAPPING(uint8)
WRAPPING(uint32)
WRAPPING(uint64)
COMPARED(int8)
COMPARED(uint8)
COMPARED(int32)
COMPARED(uint32)
COMPARED(int64)
COMPARED(uint64)
FLOATING(float32, 32)
FLOATING(float64, 64)

#define HALF_PAIR(op)                                                                                      \
	FUNCTION(half_pair_##op)(void* dst, const void* as, const void* bs, size_t n) {                    \
		const half* a = as, *b = bs;                                                               \
		half* z = dst;                                                                             \
		HOW_half(z[i] = round_half(op##32(widen_half(a[i]), widen_half(b[i]))),                    \
		         V(store_half)(z + i, V(op)(V(load_half)(a + i), V(load_half)(b + i))),            \
		         half_pair_##op##_portable(z + i, a + i, b + i, n - i))                            \
	}
HALF_PAIR(sum)
HALF_PAIR(prod)
HALF_PAIR(scaled)

// Two to a word, which saves moving them to words and back.
#define BFLOAT_PAIR(op)                                                                                    \
	FUNCTION(bfloat_pair_##op)(void* dst, const void* as, const void* bs, size_t n) {                  \
		const uint32* a = as, *b = bs;                                                             \
		uint32* z = dst;                                                                           \
		INDEPENDENT                                                                                \
		for (size_t i = 0; i < n / 2; i++) {                                                       \
			float low = op##32(float_of(a[i] << 16), float_of(b[i] << 16));                    \
			float high = op##32(float_of(a[i] & 0xffff0000), float_of(b[i] & 0xffff0000));     \
			z[i] = (round_upper(high) & 0xffff0000) | round_upper(low) >> 16;                  \
		}                                                                                          \
		const bfloat* last_a = as, *last_b = bs;                                                   \
		if (n % 2)                                                                                 \
			((bfloat*)dst)[n - 1] = round_bfloat(                                              \
			    op##32(widen_bfloat(last_a[n - 1]), widen_bfloat(last_b[n - 1])));             \
	}
#ifndef OWN_BFLOAT_PAIRS
BFLOAT_PAIR(sum)
BFLOAT_PAIR(prod)
#endif

#define CAST(type, name, from, to, one, vector)                                                            \
	FUNCTION(name)(void* dst, const void* src, size_t n) {                                             \
		const from* a = src;                                                                       \
		to* z = dst;                                                                               \
		HOW_##type(z[i] = one, vector, JOIN(name, portable)(z + i, a + i, n - i))                  \
	}
#define CASTS(type)                                                                                        \
	CAST(type, type##_widen, type, float32, quiet32(widen_##type(a[i])),                               \
	     V(store)(z + i, V(load_##type)(a + i)))                                                       \
	CAST(type, type##_round, float32, type, round_##type(a[i]),                                        \
	     V(store_##type)(z + i, V(load)(a + i)))
CASTS(half)
CASTS(bfloat)

// Halves are between elements of 8 bits and floats.
#define BYTE_CASTS(type)                                                                                   \
	CAST(type, type##_halves, type, half, half_of_##type(a[i]), )                                      \
	CAST(type, halves_##type, half, type, round_##type(a[i]), )                                        \
	FUNCTION(type##_widen)(void* dst, const void* src, size_t n) {                                     \
		uint16_t halves[WF_BLOCK];                                                                 \
		float32* z = dst;                                                                          \
		V(type##_halves)(halves, src, n);                                                          \
		V(half_widen)(z, halves, n);                                                               \
		for (size_t i = 0; SCALE_##type > 1 && i < n; i++)                                         \
			z[i] = quiet32(z[i] * SCALE_##type);                                               \
	}                                                                                                  \
	FUNCTION(type##_round)(void* dst, const void* src, size_t n) {                                     \
		const float32* a = src;                                                                    \
		float places[WF_BLOCK];                                                                    \
		uint16_t halves[WF_BLOCK];                                                                 \
		for (size_t i = 0; i < n; i++)                                                             \
			places[i] = six_places(a[i]) / SCALE_##type;                                       \
		V(half_round)(halves, places, n);                                                          \
		V(halves_##type)(dst, halves, n);                                                          \
	}
BYTE_CASTS(e4m3)
BYTE_CASTS(e5m2)

// The sum and the product of two are those of halves, rounded again: a half has over twice the places.
#define BYTE_PAIR(type, op, of_halves)                                                                     \
	FUNCTION(type##_pair_##op)(void* dst, const void* as, const void* bs, size_t n) {                  \
		uint16_t a[WF_BLOCK];                                                                      \
		uint16_t b[WF_BLOCK];                                                                      \
		V(type##_halves)(a, as, n);                                                                \
		V(type##_halves)(b, bs, n);                                                                \
		V(half_pair_##of_halves)(a, a, b, n);                                                      \
		V(halves_##type)(dst, a, n);                                                               \
	}
BYTE_PAIR(e4m3, sum, sum)
BYTE_PAIR(e4m3, prod, scaled)
BYTE_PAIR(e5m2, sum, sum)
BYTE_PAIR(e5m2, prod, prod)

// The larger or the smaller of two is one of them.
#define EXTREME_PAIR(type, op)                                                                             \
	FUNCTION(type##_pair_##op)(void* dst, const void* as, const void* bs, size_t n) {                  \
		const type* a = as, *b = bs;                                                               \
		type* z = dst;                                                                             \
		LOOP(z[i] = op##_##type(a[i], b[i]), , )                                                   \
	}

#define FOLD(type, op)                                                                                     \
	FUNCTION(type##_fold_##op)(void* dst, const void* as, const void* bs, size_t n) {                  \
		const float32* a = as;                                                                     \
		const type* b = bs;                                                                        \
		float32* z = dst;                                                                          \
		HOW_##type(z[i] = quiet32(op##32(a[i], widen_##type(b[i]))),                               \
		           V(store)(z + i, V(op)(V(load)(a + i), V(load_##type)(b + i))),                  \
		           type##_fold_##op##_portable(z + i, a + i, b + i, n - i))                        \
	}
SUM_AND_PROD(FOLD, half)
SUM_AND_PROD(FOLD, bfloat)

// Of what is quicker, or as quick, in two steps.
#define WIDE_FOLD(type, op)                                                                                \
	FUNCTION(type##_fold_##op)(void* dst, const void* as, const void* bs, size_t n) {                  \
		float wide[WF_BLOCK];                                                                      \
		V(type##_widen)(wide, bs, n);                                                              \
		V(float32_##op)(dst, as, wide, n);                                                         \
	}
SUM_AND_PROD(WIDE_FOLD, e4m3)
SUM_AND_PROD(WIDE_FOLD, e5m2)

#define EXTREMES(type)               \
	EXTREME_PAIR(type, max)      \
	EXTREME_PAIR(type, min)      \
	WIDE_FOLD(type, max)         \
	WIDE_FOLD(type, min)
EXTREMES(half)
EXTREMES(bfloat)
EXTREMES(e4m3)
EXTREMES(e5m2)

#define EACH_OP(what, type) SUM_AND_PROD(what, type) what(type, max) what(type, min)
#define NAMED(type, op) V(type##_##op),
#define PAIRED(type, op) NAMED(type, pair_##op)
#define FOLDED(type, op) NAMED(type, fold_##op)
#define PLAIN_ROW(type, sums) {sizeof(type), {NAMED(sums, sum) NAMED(sums, prod) NAMED(type, max) NAMED(type, min)}},
#define NARROW_ROW(type) \
	{{EACH_OP(PAIRED, type)}, {EACH_OP(FOLDED, type)}, NAMED(type, widen) NAMED(type, round)},
static const struct wf_cpu CPU = {
    NAME,
    {PLAIN_ROW(int8, uint8) PLAIN_ROW(uint8, uint8) PLAIN_ROW(int32, uint32) PLAIN_ROW(uint32, uint32)
     PLAIN_ROW(int64, uint64) PLAIN_ROW(uint64, uint64) PLAIN_ROW(float32, float32) PLAIN_ROW(float64, float64)},
    {NARROW_ROW(half) NARROW_ROW(bfloat) NARROW_ROW(e4m3) NARROW_ROW(e5m2)},
};

#undef CPU
#undef NAME
#undef TARGET
#undef LANES
#undef HOW_half
#undef OWN_BFLOAT_PAIRS
