// Loops over buffers, for one kind of CPU: CPU names it and ends the names of its functions, TARGET is what they are
// compiled for. HOW_type is LOOP or VECTORS.

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FUNCTION(name) TARGET static void JOIN(name, CPU)
#define V(function) JOIN(function, CPU)
// Elements one after the other, as compilers vectorise it; or vectors of LANES elements, after which the portable
// function does the rest.
#define LOOP(one, vector, rest)                  \
	INDEPENDENT                              \
	for (size_t i = 0; i < n; i++)           \
		one;
#define VECTORS(one, vector, rest)               \
	size_t i = 0;                            \
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

#define PAIR(type, op)                                                                                     \
	FUNCTION(type##_pair_##op)(void* dst, const void* as, const void* bs, size_t n) {                  \
		const type* a = as, *b = bs;                                                               \
		type* z = dst;                                                                             \
		HOW_##type(z[i] = round_##type(op##32(widen_##type(a[i]), widen_##type(b[i]))),            \
		           V(store_##type)(z + i, V(op)(V(load_##type)(a + i), V(load_##type)(b + i))),    \
		           type##_pair_##op##_portable(z + i, a + i, b + i, n - i))                        \
	}

// Two to a word, which saves moving them to words and back.
#define BFLOAT_PAIR(type, op)                                                                              \
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
			((bfloat*)dst)[n - 1] = round_bfloat(                                             \
			    op##32(widen_bfloat(last_a[n - 1]), widen_bfloat(last_b[n - 1])));             \
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

#define CAST(type, name, from, to, one, vector)                                                                  \
	FUNCTION(name)(void* dst, const void* src, size_t n) {                                             \
		const from* a = src;                                                                       \
		to* z = dst;                                                                               \
		HOW_##type(z[i] = one, vector, JOIN(name, portable)(z + i, a + i, n - i))                         \
	}
#define CASTS(type)                                                                                        \
	CAST(type, type##_widen, type, float32, quiet32(widen_##type(a[i])), V(store)(z + i, V(load_##type)(a + i))) \
	CAST(type, type##_round, float32, type, round_##type(a[i]), V(store_##type)(z + i, V(load)(a + i)))

#define EACH_OP(what, type) what(type, sum) what(type, prod) what(type, max) what(type, min)
EACH_OP(PAIR, half)
EACH_OP(BFLOAT_PAIR, bfloat)
EACH_OP(PAIR, e4m3)
EACH_OP(PAIR, e5m2)
#define NARROW(type) EACH_OP(FOLD, type) CASTS(type)
NARROW(half)
NARROW(bfloat)
NARROW(e4m3)
NARROW(e5m2)

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
#undef HOW_bfloat
